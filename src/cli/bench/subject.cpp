#include "cli/bench/subject.h"

#include <algorithm>
#include <cstdlib>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/bench/shape.h"
#include "cli/bench/shape_parts.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "decode/draft/draft_vocabulary.h"

namespace foresay::cli {
namespace {

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : shapes()) names.emplace_back(shape.name);
  return names;
}

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const Isa isa : available_isas()) names.emplace_back(name_of(isa));
  return names;
}

Packing packing_of(const SubjectOptions& options) {
  return {.bits = options.bits, .head_bits = options.head_bits.value_or(options.bits)};
}

/// Before the model is opened: what a load does may depend on the instruction set.
SubjectOptions prepare(SubjectOptions options) {
  if (!options.isa.empty()) use_isa(options.isa);
  for (const Shape& shape : shapes()) {
    if (shape.name == options.shape) options.model.folder = shape_folder(shape, packing_of(options)).string();
  }
  return options;
}

TextModel open_text(const OpenModel& open) {
  Report report;
  TextModel text(open, report);
  say_report(report, /*json=*/true);
  return text;
}

}  // namespace

void add_subject_options(CLI::App& app, SubjectOptions& options) {
  add_model_options(app, options.model);
  CLI::Option* const positional = app.get_option("MODEL");
  CLI::Option* const model =
      app.add_option("--model", options.model.folder, "As MODEL")->check(not_empty())->excludes(positional);
  CLI::Option* const shape = app.add_option("--shape", options.shape,
                                    "Instead of MODEL: random weights of this shape, made once and kept in the cache")
                                 ->check(one_of(shape_names()))
                                 ->excludes(model)
                                 ->excludes(positional);
  app.add_option("--bits", options.bits, "Bits of the shape's weights: affine in groups of 64, or 16 for bf16")
      ->check(one_of({"4", "8", "16"}))
      ->needs(shape)
      ->capture_default_str();
  app.add_option("--head-bits", options.head_bits, "Bits of its embedding and output matrix; default: as --bits")
      ->check(one_of({"4", "8", "16"}))
      ->needs(shape);
  app.add_option("--isa", options.isa, "Instruction set of the cpu lane; default: the strongest of this machine")
      ->check(one_of(isa_names()));
}

Subject::Subject(SubjectOptions options)
    : options_(prepare(std::move(options))),
      open_(open_model(options_.model, /*json=*/true)),
      text_(open_text(*open_)) {
  options_.model.folder = open_->checkpoint.folder().string();
  name_ = options_.shape.empty() ? open_->checkpoint.folder().filename().string() : options_.shape;
}

int Subject::threads() const {
  return options_.model.lane.threads > 0 ? options_.model.lane.threads : available_cores();
}

nlohmann::ordered_json Subject::line(const char* bench) const {
  nlohmann::ordered_json line = {{"bench", bench}, {"shape", name_}};
  if (!options_.shape.empty()) {
    line["bits"] = options_.bits;
    line["head_bits"] = packing_of(options_).head_bits;
  }
  line["lane"] = open_->ops->describe();
  return line;
}

double Subject::trunk_bytes() const {
  return open_->loaded.bytes_per_token();
}

double Subject::head_bytes() const {
  const int vocab = model().info().vocab, low = draft_vocabulary_low(model());
  const double share = low > 0 ? static_cast<double>(low) / vocab : 1.0;  // of the output matrix, which both read
  double bytes = 0;
  for (const StorageEntry& entry : open_->loaded.storage) {
    bytes += entry.read.draft * (entry.read.token > 0 ? share : 1.0) * static_cast<double>(entry.bytes);
  }
  return bytes;
}

std::vector<TokenId> Subject::tokens(int count) const {
  const auto limit = static_cast<std::uint64_t>(std::min(text_.vocab_limit(), model().info().vocab));
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<TokenId>(random_bits(/*seed=*/0, static_cast<std::uint64_t>(i)) % limit));
  }
  return ids;
}

double rounded(double value, int digits) {
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace foresay::cli
