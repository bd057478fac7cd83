// decode/cost/cost_cache.h: measured costs, kept between runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/report.h"
#include "decode/cost/cost_model.h"

namespace foresay {

/// What the costs depend on, in words; a difference in any of them is another entry.
struct CostKey {
  std::string checkpoint;  ///< its files
  std::string machine;     ///< processor, cores, lane
  std::string build;       ///< of foresay
};

/// One JSON file per key in a folder, replaced whole, so runs at the same time do not harm each other.
class CostCache {
 public:
  explicit CostCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// $XDG_CACHE_HOME/foresay/costs, by default ~/.cache/foresay/costs; empty where neither variable names a folder.
  [[nodiscard]] static std::filesystem::path default_folder();

  [[nodiscard]] std::filesystem::path file_of(const CostKey& key) const;
  /// Nothing where there is no entry of this very key, or one that is damaged or of another format: measure again.
  [[nodiscard]] std::optional<CostModel> read(const CostKey& key) const;
  /// An entry that cannot be written is a warning in `report`.
  void write(const CostKey& key, const CostModel& costs, Report& report) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace foresay
