// foresay eval --text and --against: figures against plain loops over the logits in the file, and what is refused.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/program.h"
#include "text/tokenizer.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

/// Rows of a file that --out wrote, as log-probabilities by the definition.
struct Dump {
  std::vector<TokenId> ids;
  std::vector<std::vector<double>> log_p;  ///< [N][V]
  std::vector<float> logits;

  explicit Dump(const fs::path& file) {
    const TensorMap tensors = read_tensors(file);
    const OwnedTensor& stored = tensors.at("ids");
    EXPECT_EQ(stored.dtype, DType::i32);
    ids.resize(stored.bytes.size() / sizeof(TokenId));
    std::memcpy(ids.data(), stored.bytes.data(), stored.bytes.size());
    EXPECT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors.at("logits").shape, (std::vector<std::int64_t>{static_cast<std::int64_t>(ids.size()), 4096}));
    logits = tensors.at("logits").to_float();
    for (std::size_t t = 0; t < ids.size(); ++t) {
      auto& row = log_p.emplace_back(logits.begin() + static_cast<std::ptrdiff_t>(t * 4096),
          logits.begin() + static_cast<std::ptrdiff_t>((t + 1) * 4096));
      double sum = 0;
      for (const double x : row) sum += std::exp(x);
      for (double& x : row) x -= std::log(sum);
    }
  }

  [[nodiscard]] std::ptrdiff_t peak(std::size_t t) const {
    return std::ranges::max_element(log_p[t]) - log_p[t].begin();
  }
  [[nodiscard]] double nats(std::size_t window) const {
    double sum = 0;
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      if ((t + 1) % window != 0) sum -= log_p[t][static_cast<std::size_t>(ids[t + 1])];
    }
    return sum;
  }
};

class EvalText : public ::testing::Test {
 protected:
  EvalText() { write_text(text_, read_text(FORESAY_TEST_DATA "/held_out.txt").substr(0, 400)); }

  Json score(Arguments more, const std::string& model = kBundled) {
    more.insert(more.begin(), {"eval", model, "--text", text_.string(), "--json"});
    return json_of(foresay(more));
  }
  void refused(const Arguments& more, int status, const std::vector<std::string>& parts) {
    Arguments arguments = {"eval", kBundled};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, status, parts);
  }
  /// A copy of a_ with something changed.
  fs::path changed(const std::function<void(TensorMap&)>& edit) {
    const fs::path copy = dir_.path() / "changed.safetensors";
    fs::copy_file(a_, copy, fs::copy_options::overwrite_existing);
    edit_tensors(copy, edit);
    return copy;
  }

  TempDir dir_;
  fs::path text_ = dir_.path() / "text.txt";
  fs::path a_ = dir_.path() / "a.safetensors", b_ = dir_.path() / "b.safetensors";
};

TEST_F(EvalText, FiguresAreThoseOfPlainLoopsOverTheLogits) {
  const Json d = score({"--window", "48", "--out", a_.string()});
  const Dump dump(a_);
  EXPECT_EQ(dump.ids, Tokenizer::load(kBundled).encode(read_text(text_)));
  const std::size_t size = dump.ids.size(), windows = (size + 47) / 48, predicted = size - windows;
  EXPECT_EQ(d["tokens"], size);
  EXPECT_EQ(d["windows"], windows);
  EXPECT_EQ(d["predicted"], predicted);
  EXPECT_EQ(d["window"], 48);
  const double nats = dump.nats(48);
  EXPECT_NEAR(d["nats"].get<double>(), nats, 1e-9 * nats);
  EXPECT_NEAR(d["perplexity"].get<double>(), std::exp(nats / static_cast<double>(predicted)), 1e-9);

  const Tokenizer tokenizer = Tokenizer::load(kBundled);
  std::size_t bytes = 0, correct = 0;
  for (std::size_t t = 0; t < size; ++t) {
    if (t % 48 != 0) bytes += tokenizer.token_bytes(dump.ids[t], false).size();
    if (t % 48 != 0) correct += dump.peak(t - 1) == dump.ids[t] ? 1u : 0u;
  }
  EXPECT_LT(bytes, 400u);  // without the first token of each window
  EXPECT_EQ(d["predicted_bytes"], bytes);
  EXPECT_NEAR(d["bits_per_byte"].get<double>(), nats / std::log(2) / static_cast<double>(bytes), 1e-9);
  EXPECT_NEAR(d["top1"].get<double>(), static_cast<double>(correct) / static_cast<double>(predicted), 1e-12);
  ASSERT_EQ(d["steps"].size(), 3u);
  for (const Json& step : d["steps"]) {
    EXPECT_GT(step["agreement"], 0.3);  // the bundled head is a good one
    EXPECT_GT(step["accept_probability"], 0.3);
    EXPECT_EQ(step["unusable"], 0);
  }
  EXPECT_GT(d["steps"][0]["agreement"], d["steps"][2]["agreement"]);
}

TEST_F(EvalText, AnotherRunIsComparedAsPlainLoopsDo) {
  (void)score({"--out", a_.string()});
  const std::string packed = FORESAY_MODELS "/tiny-qwen3_5-4bit";
  const Json d = score({"--out", b_.string(), "--against", a_.string()}, packed);
  const Dump p(a_), q(b_);
  std::vector<double> kl;
  std::size_t agreed = 0;
  double furthest = 0;
  for (std::size_t t = 0; t < p.ids.size(); ++t) {
    double sum = 0;
    for (std::size_t i = 0; i < 4096; ++i) sum += std::exp(p.log_p[t][i]) * (p.log_p[t][i] - q.log_p[t][i]);
    kl.push_back(sum);
    agreed += p.peak(t) == q.peak(t) ? 1u : 0u;
  }
  for (std::size_t i = 0; i < p.logits.size(); ++i)
    furthest = std::max(furthest, std::fabs(double{p.logits[i]} - double{q.logits[i]}));
  double mean = 0;
  for (const double each : kl) mean += each / static_cast<double>(kl.size());
  std::ranges::sort(kl);
  const Json& a = d["against"];
  EXPECT_EQ(a["file"], a_.string());
  EXPECT_EQ(a["rows"], kl.size());
  EXPECT_NEAR(a["kl_mean"].get<double>(), mean, 1e-9);
  EXPECT_NEAR(a["kl_99"].get<double>(), kl[(99 * kl.size() + 99) / 100 - 1], 1e-9);
  EXPECT_NEAR(a["kl_max"].get<double>(), kl.back(), 1e-9);
  EXPECT_NEAR(a["top1_agreement"].get<double>(), static_cast<double>(agreed) / static_cast<double>(kl.size()), 1e-12);
  EXPECT_NEAR(a["max_logit_difference"].get<double>(), furthest, 1e-6);
  const auto predicted = static_cast<double>(p.ids.size() - 1);  // one window
  EXPECT_NEAR(a["reference_perplexity"].get<double>(), std::exp(p.nats(512) / predicted), 1e-9);
  EXPECT_NEAR(a["perplexity_ratio"].get<double>(), std::exp((q.nats(512) - p.nats(512)) / predicted), 1e-9);
}

// The window is that of the file; chunks and threads change nothing.
TEST_F(EvalText, TheSameRunAgainHasNoDistance) {
  const Json first = score({"--window", "40", "--out", a_.string()});
  const Json d = score({"--against", a_.string(), "--prefill-chunk", "9", "--threads", "2"});
  EXPECT_EQ(d["window"], 40);
  for (const char* zero : {"kl_mean", "kl_99", "kl_max", "max_logit_difference"})
    EXPECT_EQ(d["against"][zero], 0) << zero;
  EXPECT_EQ(d["against"]["top1_agreement"], 1);
  EXPECT_EQ(d["against"]["perplexity_ratio"], 1);
  EXPECT_EQ(d["against"]["lane"], first["lane"]);
  for (const char* same : {"nats", "top1", "steps", "predicted_bytes"}) EXPECT_EQ(d[same], first[same]) << same;
}

TEST_F(EvalText, IdsAndPipedTextAreScoredAlike) {
  const Json want = score({"--out", a_.string()});
  std::string ids;
  for (const TokenId id : Dump(a_).ids) ids += std::to_string(id) + ",";
  Json got = json_of(foresay({"eval", kBundled, "--ids", ids, "--against", a_.string(), "--json"}));
  EXPECT_EQ(got["text"], nullptr);
  EXPECT_EQ(got["nats"], want["nats"]);
  EXPECT_EQ(got["against"]["kl_max"], 0);
  Command command;
  command.input = read_text(text_);
  got = json_of(foresay({"eval", kBundled, "--text", "-", "--json"}, command));
  EXPECT_EQ(got["nats"], want["nats"]);
}

TEST_F(EvalText, TextOutputNamesEveryFigure) {
  const Outcome outcome = foresay({"eval", kBundled, "--text", text_.string(), "--out", a_.string()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_parts(outcome.out, {"perplexity", "bits per byte", "top-1", "draft step 3", a_.string()});
  expect_parts(foresay({"eval", kBundled, "--text", text_.string(), "--against", a_.string(), "--mtp", "off"}).out,
      {"KL", "mean 0", "same top-1", "100.000 %", "1.000000 times"});
  EXPECT_EQ(foresay({"eval", "--diff", a_.string(), a_.string()}).status, 0);  // ids too
}

TEST_F(EvalText, WithoutATokenizerIdsHaveNoBytes) {
  const fs::path model = write_tiny(dir_.path() / "model");
  const Json d = json_of(foresay({"eval", model.string(), "--ids", "5,6,7,8,9", "--window", "3", "--json"}));
  EXPECT_EQ(d["bits_per_byte"], nullptr);
  EXPECT_EQ(d["predicted"], 3);
  EXPECT_EQ(d["steps"].size(), 2u);  // a window of 3 has no third step
  expect_refused({"eval", model.string(), "--text", text_.string()}, 3, {"tokenizer.json"});
}

TEST_F(EvalText, RefusesBadText) {
  refused({"--text", (dir_.path() / "none").string()}, 2, {"--text", "none", "No such file"});
  refused({"--text", dir_.path().string()}, 2, {"--text", "folder"});
  write_text(text_, "");
  refused({"--text", text_.string()}, 2, {"--text", "empty", text_.string()});
  write_text(text_, "a");
  refused({"--text", text_.string()}, 2, {"--text", "at least 2 tokens", "found 1"});
  write_text(text_, "ab\xff");
  refused({"--text", text_.string()}, 2, {"--text", "UTF-8", "offset 2"});
  refused({"--ids", "5", "--window", "8"}, 2, {"--ids", "at least 2 tokens"});
  refused({"--ids", "5,4096", "--window", "8"}, 2, {"4096", "vocabulary"});
}

TEST_F(EvalText, RefusesBadOptions) {
  const auto text = text_.string();
  refused({"--text", text, "--window", "1"}, 2, {"--window", "\"1\""});
  refused({"--text", text, "--window", "9999"}, 2, {"--window", "4096", "9999"});
  refused({"--text", text, "--ids", "1,2"}, 2, {"--text", "--ids"});
  refused({"--text", text, "--layers"}, 2, {"--text", "--layers"});
  refused({"--text", text, "--diff", "a", "b"}, 2, {"--text", "--diff"});
  refused({"--window", "8"}, 2, {"--text", "--ids"});
  const auto missing = (dir_.path() / "missing" / "a").string();
  refused({"--text", text, "--out", missing}, 6, {missing});
}

TEST_F(EvalText, RefusesReferencesThatAreNone) {
  (void)score({"--window", "40", "--out", a_.string()});
  const auto against = [&](const fs::path& file, int status, const std::vector<std::string>& parts,
                           Arguments more = {}) {
    more.insert(more.begin(), {"--text", text_.string(), "--against", file.string()});
    refused(more, status, parts);
  };
  against(dir_.path() / "none", 2, {"--against", "none"});
  against(a_, 2, {"--window", "40", "found 48"}, {"--window", "48"});
  against(changed([](TensorMap& tensors) { tensors.erase("logits"); }), 2, {"logits", "found none", "--out"});
  against(changed([](TensorMap& tensors) { tensors.erase("ids"); }), 2, {"ids", "found none"});
  against(changed([](TensorMap& tensors) {
    auto& ids = tensors.at("ids");
    const TokenId other = 77;
    std::memcpy(ids.bytes.data() + 5 * sizeof(other), &other, sizeof(other));
  }),
      2, {"the same ids", "found 77", "token 5"});
  against(changed([](TensorMap& tensors) {
    auto& ids = tensors.at("ids");
    ids.shape[0] -= 1;
    ids.bytes.resize(ids.bytes.size() - 4);
    auto& logits = tensors.at("logits");
    logits.shape[0] -= 1;
    logits.bytes.resize(logits.bytes.size() - 4 * 4096);
  }),
      2, {"expected", "ids, found"});
  against(changed([](TensorMap& tensors) {
    tensors.at("logits").shape[0] *= 2;
    tensors.at("logits").shape[1] /= 2;
  }),
      3, {"a row of logits for each"});
  against(changed([](TensorMap& tensors) {
    tensors.at("logits").shape = {1, 4096, -1};
    tensors.at("logits").shape[2] = static_cast<std::int64_t>(tensors.at("ids").bytes.size() / 4);
  }),
      2, {"logits", "2 axes"});
  against(changed([](TensorMap& tensors) {
    tensors.at("logits").set(3 * 4096 + 9, std::numeric_limits<float>::quiet_NaN());
  }),
      3, {"row 3", "id 9", "damaged"});
  write_text(b_, "no safetensors");
  against(b_, 3, {b_.string()});
  const TensorMap whole = read_tensors(a_);
  write_tensors(b_, whole);  // without the window
  against(b_, 2, {"window", "metadata"});

  const fs::path model = write_tiny(dir_.path() / "model");  // 256 ids
  const TensorMap narrow = {{"ids", OwnedTensor{DType::i32, {2}, std::vector<std::byte>(8)}},
      {"logits", OwnedTensor::of(DType::f32, {2, 8}, std::array<float, 16>{})}};
  write_tensors(b_, narrow, {{"foresay_window", "8"}});
  expect_refused({"eval", model.string(), "--ids", "0,0", "--against", b_.string()}, 2, {"256", "[2, 8]"});
}

TEST_F(EvalText, ADamagedWeightIsNamed) {
  const fs::path model = copy_bundled(dir_.path() / "model");
  edit_bundled_weights(model, [](TensorMap& tensors) {
    for (auto& [name, tensor] : tensors) {
      if (name.ends_with("layers.0.mlp.down_proj.weight")) tensor.set(7, std::numeric_limits<float>::quiet_NaN());
    }
  });
  expect_refused({"eval", model.string(), "--text", text_.string(), "--out", a_.string()}, 3, {"down_proj", "damaged"});
  EXPECT_FALSE(fs::exists(a_));
}

}  // namespace
}  // namespace foresay
