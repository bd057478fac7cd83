// lossless/subject.h: the models that the suite runs, their prompts and samplers, and what plain decoding makes of
// them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "decode/evaluate.h"
#include "decode/generate.h"
#include "fixtures/drafters.h"
#include "fixtures/golden.h"
#include "fixtures/moe_checkpoint.h"
#include "fixtures/prefix_model.h"
#include "fixtures/scripted_model.h"
#include "fixtures/step_checkpoint.h"
#include "fixtures/temp_dir.h"
#include "fixtures/tiny_checkpoint.h"
#include "model/load.h"

namespace foresay {

/// A model on a lane of its own.
struct Loaded {
  Loaded(const std::filesystem::path& folder, int threads, CpuActivations activations = CpuActivations::float32)
      : Loaded(folder, make_cpu_ops(threads, activations)) {}
  Loaded(const std::filesystem::path& folder, std::unique_ptr<Ops> lane, MtpMode mtp = MtpMode::on)
      : ops(std::move(lane)) {
    Report report;
    const Checkpoint checkpoint = Checkpoint::open(folder, report);
    LoadOptions options;
    options.mtp = mtp;
    model = load_model(checkpoint, *ops, options, report).model;
  }
  explicit Loaded(std::unique_ptr<Model> with_own_lane) : model(std::move(with_own_lane)) {}

  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;
};

/// Pages of the caches hold 64 positions: prompts end before, on and behind their borders, and answers cross them.
inline constexpr int kPromptLengths[] = {1, 5, 63, 64, 65, 130};

/// One checkpoint of the suite, or a PrefixModel.
class Subject {
 public:
  Subject(std::string name, HeadScheme scheme) : name_(std::move(name)), prefix_(scheme) {}
  Subject(std::string name, std::filesystem::path folder, CpuActivations activations)
      : name_(std::move(name)), folder_(std::move(folder)), activations_(activations) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] CpuActivations activations() const { return activations_; }
  [[nodiscard]] bool is_present() const { return prefix_ || std::filesystem::exists(folder_ / "config.json"); }
  /// Has a head that is often right; a pass costs fifty times one of the others.
  [[nodiscard]] bool is_trained() const { return !prefix_ && std::filesystem::exists(folder_ / "tokenizer.json"); }

  /// The model on `threads` threads, loaded once.
  [[nodiscard]] const Model& model(int threads = 1) {
    auto& loaded = loaded_[threads];
    if (!loaded) {
      loaded = prefix_ ? std::make_unique<Loaded>(std::make_unique<PrefixModel>(*prefix_))
                       : std::make_unique<Loaded>(folder_, threads, activations_);
    }
    return *loaded->model;
  }
  /// The model loaded without its head.
  [[nodiscard]] Loaded headless() const {
    if (!prefix_) return Loaded(folder_, make_cpu_ops(1, activations_), MtpMode::off);
    auto model = std::make_unique<PrefixModel>(*prefix_);
    model->drop_head();
    return Loaded(std::move(model));
  }

  /// A prompt of `length` tokens: real text for the trained models, random ids otherwise.
  [[nodiscard]] Ids prompt(int length, std::uint32_t seed = 0) {
    if (is_trained()) {
      if (text_.empty()) text_ = training_text();
      const std::size_t first = seed * 11 % (text_.size() - static_cast<std::size_t>(length));
      const auto from = text_.begin() + static_cast<std::ptrdiff_t>(first);
      return {from, from + length};
    }
    std::mt19937 random(seed * 1000 + static_cast<std::uint32_t>(length));
    Ids ids(static_cast<std::size_t>(length));
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % static_cast<std::uint32_t>(model().info().vocab));
    return ids;
  }

 private:
  /// Code of the kind that the models were trained on, as ids.
  static Ids training_text() {
    const auto file = std::filesystem::path(FORESAY_TEST_DATA) / "acceptance_prompts.json";
    const auto golden = nlohmann::json::parse(read_text(file));
    Ids text;
    for (const auto& prompt : golden.at("prompts")) {
      if (prompt.at("kind") != "code") continue;
      const auto ids = prompt.at("ids").get<Ids>();
      text.insert(text.end(), ids.begin(), ids.end());
    }
    return text;
  }

  std::string name_;
  std::filesystem::path folder_;
  CpuActivations activations_ = CpuActivations::float32;
  std::optional<HeadScheme> prefix_;
  std::map<int, std::unique_ptr<Loaded>> loaded_;
  Ids text_;
};

/// The affine 4-bit variant of the hybrid, in MLX layout.
[[nodiscard]] inline TinyOptions tiny_hybrid_4bit() {
  auto options = tiny_hybrid();
  options.layout = TinyOptions::Layout::mlx;
  options.quant_bits = 4;
  options.head_quant_bits = 4;
  return options;
}

/// The subject of a name in kSubjects: a checkpoint, with int8 activations where the name says so, or a PrefixModel of
/// a scheme. Synthetic checkpoints are written when first asked for.
[[nodiscard]] inline Subject& subject(const std::string& full_name) {
  static const TempDir written;
  static std::map<std::string, std::unique_ptr<Subject>> subjects;
  auto& found = subjects[full_name];
  if (found) return *found;
  const std::map<std::string, HeadScheme> distinct = {
      {"prefix_chained", HeadScheme::chained}, {"prefix_parallel", HeadScheme::parallel}};
  if (const auto scheme = distinct.find(full_name); scheme != distinct.end()) {
    found = std::make_unique<Subject>(full_name, scheme->second);
    return *found;
  }
  constexpr std::string_view kInt8 = "_int8";
  const bool int8 = full_name.ends_with(kInt8);
  const std::string name = full_name.substr(0, full_name.size() - (int8 ? kInt8.size() : 0));
  const std::map<std::string, TinyOptions> synthetic = {{"tiny", tiny()}, {"tiny_tied", tiny_tied()},
      {"tiny_hybrid", tiny_hybrid()}, {"tiny_hybrid_4bit", tiny_hybrid_4bit()}};
  std::filesystem::path folder;
  if (const auto options = synthetic.find(name); options != synthetic.end()) {
    folder = write_tiny(written.path() / full_name, options->second);
  } else if (name == "moe_4bit") {
    folder = write_moe_4bit(written.path() / full_name);
  } else if (name == "step_4bit") {
    folder = write_step_4bit(written.path() / full_name);
  } else if (name.starts_with("random_")) {
    folder = std::filesystem::path(FORESAY_TEST_DATA) / "random" / name.substr(7);
  } else {
    folder = std::filesystem::path(FORESAY_MODELS) / (name == "trained"           ? "tiny-qwen3_5"
                                                         : name == "trained_step" ? "tiny-step3p5"
                                                                                  : "tiny-qwen3_5-4bit");
  }
  found = std::make_unique<Subject>(full_name, folder, int8 ? CpuActivations::int8 : CpuActivations::float32);
  return *found;
}

inline const std::string kSubjects[] = {"tiny", "tiny_tied", "tiny_hybrid", "tiny_hybrid_4bit", "tiny_hybrid_4bit_int8",
    "random_qwen3_5", "random_qwen3_5_moe", "random_qwen3_next", "random_step3p5", "step_4bit_int8", "moe_4bit_int8",
    "prefix_chained", "prefix_parallel", "trained", "trained_4bit", "trained_4bit_int8"};

/// Greedy, then samplers whose ids must not depend on drafting: a seed makes acceptance coupled.
[[nodiscard]] inline SamplingOptions sampling(int index) {
  switch (index) {
    case 0:
      return {};
    case 1:
      return {.temperature = 0.8, .top_k = 20};
    case 2:
      return {.temperature = 0.8, .top_p = 0.9};
    case 3:
      return {.temperature = 0.8, .min_p = 0.05};
    case 4:
      return {.temperature = 1.3};
    case 5:
      return {.temperature = 1.3, .top_k = 40, .top_p = 0.95, .min_p = 0.02};
    case 6:  // greedy over the whole history
      return {.repetition_penalty = 1.2,
          .presence_penalty = 0.3,
          .frequency_penalty = 0.4,
          .repetition_window = 0,
          .presence_window = 0,
          .frequency_window = 0,
          .bad_words = {{3}, {5, 6}}};
    default:  // everything, in another order
      return {.temperature = 0.9,
          .top_k = 40,
          .top_p = 0.97,
          .min_p = 0.01,
          .min_keep = 3,
          .xtc_probability = 0.5,
          .xtc_threshold = 0.05,
          .xtc_exempt = {11},
          .repetition_penalty = 1.3,
          .presence_penalty = 0.4,
          .frequency_penalty = 0.2,
          .frequency_window = 64,
          .logit_bias = {{7, 1.5f}, {9, -4.0f}},
          .bad_words = {{13}, {7, 7}},
          .order = {SamplingStep::temperature, SamplingStep::xtc, SamplingStep::top_k, SamplingStep::min_p,
              SamplingStep::top_p}};
  }
}
inline constexpr int kSamplings = 8;

[[nodiscard]] inline Generation decode(
    const Model& model, Drafter* drafter, const Ids& prompt, const DecodeOptions& options, int chunk = 0) {
  GenerateRequest request;
  request.prompt = prompt;
  request.options = options;
  request.prefill_chunk = chunk;
  return generate(model, drafter, request);
}

/// Plain decoding in one chunk on one thread, which everything else must equal.
struct Truth {
  Truth(const Model& model, const Ids& the_prompt, DecodeOptions options) : prompt(the_prompt) {
    options.depth = 0;
    ids = decode(model, nullptr, prompt, options).ids;
    text = prompt;
    text.insert(text.end(), ids.begin(), ids.end());
    rows = evaluate(model, std::span(text).first(text.size() - 1), 0);
  }

  Ids prompt;
  Ids ids;          ///< what was generated
  Ids text;         ///< prompt and ids
  Evaluation rows;  ///< of every position that the caches hold at the end
};

[[nodiscard]] inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

[[nodiscard]] inline std::span<const float> row(std::span<const float> values, int index, int width) {
  return values.subspan(
      static_cast<std::size_t>(index) * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
}

/// A model that remembers the newest row of the target at every position of every sequence. At the end of a run those
/// are the rows that decided: a rejected position is run again, or is behind the end.
class Witness {
 public:
  explicit Witness(const Model& real) : model(real) {
    model.on_hidden = [this](const ScriptedModel::Row& row, std::span<const float> pre, std::span<const float> post) {
      Seen& seen = at(row);
      seen.token = row.token;
      seen.pre.assign(pre.begin(), pre.end());
      seen.post.assign(post.begin(), post.end());
    };
    model.on_logits = [this](const ScriptedModel::Row& row, std::span<float> logits) {
      at(row).logits.assign(logits.begin(), logits.end());
    };
  }

  /// Hidden states of every position and logits from the last of the prompt on are the truth's, bit for bit.
  /// `caches` may be null where only one sequence ran.
  [[nodiscard]] ::testing::AssertionResult equals(const Truth& truth, const CacheSet* caches = nullptr) const {
    if (caches == nullptr && seen_.size() != 1) return ::testing::AssertionFailure() << seen_.size() << " sequences";
    const std::vector<Seen>& seen = caches != nullptr ? seen_.at(caches) : seen_.begin()->second;
    const Evaluation& rows = truth.rows;
    if (static_cast<int>(seen.size()) < rows.positions)
      return ::testing::AssertionFailure() << "only " << seen.size() << " positions were run";
    for (int t = 0; t < rows.positions; ++t) {
      const Seen& one = seen[static_cast<std::size_t>(t)];
      const auto differs = [t] { return ::testing::AssertionFailure() << "position " << t << " differs in "; };
      if (one.token != truth.text[static_cast<std::size_t>(t)]) return differs() << "its token";
      if (!same_bits(one.pre, row(rows.hidden_pre_norm, t, rows.hidden))) return differs() << "pre-norm hidden state";
      if (!same_bits(one.post, row(rows.hidden_post_norm, t, rows.hidden)))
        return differs() << "post-norm hidden state";
      if (t < static_cast<int>(truth.prompt.size()) - 1) continue;
      if (!same_bits(one.logits, row(rows.logits, t, rows.vocab))) return differs() << "logits";
    }
    return ::testing::AssertionSuccess();
  }

  /// Largest absolute difference from the truth in hidden states and logits of the first `positions` positions:
  /// for lanes that promise closeness, not bits. Infinite where one was not run, or read another token.
  [[nodiscard]] double distance(const Truth& truth, int positions, const CacheSet* caches = nullptr) const {
    const std::vector<Seen>& seen = caches != nullptr ? seen_.at(caches) : seen_.begin()->second;
    const Evaluation& rows = truth.rows;
    if (static_cast<int>(seen.size()) < positions) return std::numeric_limits<double>::infinity();
    double worst = 0;
    for (int t = 0; t < positions; ++t) {
      const Seen& one = seen[static_cast<std::size_t>(t)];
      if (one.token != truth.text[static_cast<std::size_t>(t)]) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, max_abs(one.pre, row(rows.hidden_pre_norm, t, rows.hidden)));
      worst = std::max(worst, max_abs(one.post, row(rows.hidden_post_norm, t, rows.hidden)));
      if (t < static_cast<int>(truth.prompt.size()) - 1) continue;
      worst = std::max(worst, max_abs(one.logits, row(rows.logits, t, rows.vocab)));
    }
    return worst;
  }

  /// The highest position that was run, -1 without any.
  [[nodiscard]] int last_position() const {
    int last = -1;
    for (const auto& [caches, seen] : seen_) last = std::max(last, static_cast<int>(seen.size()) - 1);
    return last;
  }

  ScriptedModel model;

 private:
  struct Seen {
    TokenId token = -1;
    std::vector<float> pre, post, logits;
  };
  Seen& at(const ScriptedModel::Row& row) {
    auto& seen = seen_[row.caches];
    if (static_cast<int>(seen.size()) <= row.position) seen.resize(static_cast<std::size_t>(row.position) + 1);
    return seen[static_cast<std::size_t>(row.position)];
  }

  std::map<const CacheSet*, std::vector<Seen>> seen_;
};

/// A test over one subject, whose files must be there.
class SubjectTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(subject(GetParam()).is_present()) << subject(GetParam()).folder() << " is not there";
  }
  [[nodiscard]] Subject& subject_() const { return subject(GetParam()); }
};

}  // namespace foresay
