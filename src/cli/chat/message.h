// cli/chat/message.h: one message out of lines: a line, a pasted block, or lines that were joined on purpose.
#pragma once

#include "cli/chat/lines.h"

namespace foresay::cli {

/// Reads lines until a message is whole. A line that ends with a backslash goes on in the next one; a line that begins
/// with """ goes on up to one that ends with """. A block that was pasted is a message as it is. The result's kind is
/// that of the last line; a message that the end of the input cuts off counts.
[[nodiscard]] Line read_message(Lines& lines);

}  // namespace foresay::cli
