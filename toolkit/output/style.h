/// Bold and coloured text on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace cmt::output {

enum class Style { bold, red };

/// Whether styled() marks texts. False until set.
void use_styles(bool on);

/// Whether standard output shows styles: a terminal that knows them, and the variable NO_COLOR is not set.
bool output_has_styles();

/// The text with marks around it, which command::print() turns into the terminal's sequences. Without styles, the text.
std::string styled(std::string_view text, Style style);

/// Makes every mark the terminal's sequence. `clean` is applied to all text between the marks.
std::string to_sequences(std::string_view text, std::string (*clean)(std::string_view));

}  // namespace cmt::output
