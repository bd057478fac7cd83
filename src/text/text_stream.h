// text/text_stream.h: generated ids -> text that can be shown: whole characters, nothing of a stop string.
#pragma once

#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace foresay {

/// The tokenizer must outlive it.
class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops)
      : detokenizer_(tokenizer), stops_(std::move(stops)) {}

  /// Text that this token makes safe to show; look at stopped() afterwards.
  [[nodiscard]] std::string push(TokenId id) { return through(detokenizer_.push(id)); }

  /// What was held back, once no more tokens come.
  [[nodiscard]] std::string finish() {
    std::string text = through(detokenizer_.finish());
    if (!stopped_) text += stops_.finish();
    return text;
  }

  [[nodiscard]] bool stopped() const { return stopped_; }  ///< a stop string was completed

 private:
  std::string through(const std::string& text) {
    StopStrings::Output out = stops_.push(text);
    stopped_ = stopped_ || out.stopped;
    return std::move(out.text);
  }

  Detokenizer detokenizer_;
  StopStrings stops_;
  bool stopped_ = false;
};

}  // namespace foresay
