// text/stop_strings.h: cutting generated text at the first stop string, over any token borders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foresay {

/// Holds back the longest tail that may still become a stop string, and gives out everything before it. Of several
/// stops the one completed first wins, then the longest, so the result does not depend on how the text was cut into
/// pushes.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops = {});  ///< empty strings are ignored

  struct Output {
    std::string text;      ///< safe to show
    bool stopped = false;  ///< a stop string was completed; it and everything after it is dropped
  };
  [[nodiscard]] Output push(std::string_view text);  ///< after a stop, further text is dropped
  [[nodiscard]] std::string finish();                ///< the held-back tail, once no more text comes

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace foresay
