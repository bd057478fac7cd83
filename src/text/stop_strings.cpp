#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace foresay {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopStrings::Output StopStrings::push(std::string_view text) {
  if (stopped_) return {.text = "", .stopped = true};
  held_ += text;

  // The stop that is completed first ends the text, so the answer does not depend on how the text was cut into pushes.
  auto best_end = std::string::npos;
  auto best_begin = std::string::npos;
  for (const auto& stop : stops_) {
    const auto begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const auto end = begin + stop.size();
    if (end < best_end || (end == best_end && begin < best_begin)) {
      best_end = end;
      best_begin = begin;
    }
  }
  if (best_begin != std::string::npos) {
    stopped_ = true;
    held_.resize(best_begin);
    return {.text = std::exchange(held_, {}), .stopped = true};
  }

  std::size_t n_held = 0;
  for (const auto& stop : stops_) {
    for (auto n = std::min(held_.size(), stop.size() - 1); n > n_held; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) n_held = n;
    }
  }
  Output output{.text = held_.substr(0, held_.size() - n_held)};
  held_.erase(0, held_.size() - n_held);
  return output;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace foresay
