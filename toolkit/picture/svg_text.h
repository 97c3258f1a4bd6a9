#pragma once

#include <string>
#include <string_view>

namespace cmt::output {

/// Puts an SVG together, element by element. Lengths are pixels, written with one digit after the point at most. How
/// things look is a class's business (svg.css): the text has no colours and no fonts of its own.
class SvgText {
 public:
  enum class Anchor { start, middle, end };

  /// Appends as it is.
  void raw(std::string_view text) { text_ += text; }

  void line(double x1, double y1, double x2, double y2, std::string_view look);
  void rect(double x, double y, double width, double height, std::string_view look);
  void path(std::string_view steps, std::string_view look);
  void words(double x, double y, Anchor anchor, std::string_view look, std::string_view words);

  /// The same, upwards.
  void words_up(double x, double y, std::string_view look, std::string_view words);

  std::string take() { return std::move(text_); }

  /// "12.3", "12".
  static std::string number(double number);

  /// A text's characters, with those escaped that mean something; what no XML may hold becomes U+FFFD.
  static std::string escape(std::string_view text);

 private:
  void attribute(std::string_view name, double value);
  void look(std::string_view look);

  std::string text_;
};

}  // namespace cmt::output
