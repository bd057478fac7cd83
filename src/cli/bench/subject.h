// cli/bench/subject.h: what is measured and where: the options of every bench, and the model they open.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/open_model.h"
#include "library/text_model.h"

namespace foresay::cli {

struct SubjectOptions {
  ModelOptions model;
  std::string shape;  ///< empty: the model that `model` names
  int bits = 4;
  std::optional<int> head_bits;
  std::string isa;
};

void add_subject_options(CLI::App& app, SubjectOptions& options);

/// The model that was asked for, open. Results are JSON lines that begin with the conditions they were measured under.
class Subject {
 public:
  /// Makes the random checkpoint where --shape asks for one that is not there; sets the instruction set.
  explicit Subject(SubjectOptions options);

  [[nodiscard]] const OpenModel& open() const { return *open_; }
  [[nodiscard]] const TextModel& text() const { return text_; }
  [[nodiscard]] const Model& model() const { return open_->model(); }
  [[nodiscard]] int threads() const;  ///< that computing uses
  [[nodiscard]] const std::string& folder() const { return options_.model.folder; }

  /// {"bench", "shape", "bits", ...} for a result of this subject.
  [[nodiscard]] nlohmann::ordered_json line(const char* bench) const;

  /// Bytes of weights that a pass reads whole: the trunk's, without an embedding that is only looked up.
  [[nodiscard]] double trunk_bytes() const;
  /// The same for a step of the head, output matrix included.
  [[nodiscard]] double head_bytes() const;

  /// Made-up tokens of the vocabulary, the same every time.
  [[nodiscard]] std::vector<TokenId> tokens(int count) const;

 private:
  SubjectOptions options_;
  std::string name_;
  std::unique_ptr<OpenModel> open_;
  TextModel text_;
};

/// To so many significant digits: more than a shared machine repeats, and short.
[[nodiscard]] double rounded(double value, int digits = 4);

[[nodiscard]] double median(std::vector<double> values);  ///< of one or more

}  // namespace foresay::cli
