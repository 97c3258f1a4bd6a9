/// Bold text on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace cmt::output {

/// Whether bold() marks texts. False until set.
void use_bold(bool on);

/// The text with marks around it, which command::print() turns into a terminal's sequences. Without use_bold(true), the
/// text.
std::string bold(std::string_view text);

/// The text without marks, for a file beside standard output.
std::string without_styles(std::string_view text);

/// Makes every mark the terminal's sequence. `clean` is applied to all text between the marks.
std::string to_sequences(std::string_view text, std::string (*clean)(std::string_view));

}  // namespace cmt::output
