// base/report.h: what a load decided, in words, so that whoever called can show it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace foresay {

/// Collects the decisions and warnings of one load. Library code never prints: the command line and the server do.
class Report {
 public:
  void note(std::string text) { notes_.push_back(std::move(text)); }     ///< a decision and its reason
  void warn(std::string text) { warnings_.push_back(std::move(text)); }  ///< something the user may want to mend
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::string> notes_;
  std::vector<std::string> warnings_;
};

}  // namespace foresay
