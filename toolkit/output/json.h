/// JSON of reports, written in order, so that a long one can be drained piece by piece.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cmt::output {

/// Builds a JSON text in order, indented by two; arrays of plain values stay on one line.
///
///     JsonWriter json;
///     json.begin_object();
///     json.field("schema", "cmt.replay/1");
///     json.begin_array("marks"); json.value(1); json.end_array();
///     json.end_object();
///     std::string text = json.take();
///
/// Calls in a wrong order are asserted. NaN and infinity are written as null.
class JsonWriter {
 public:
  void begin_object(std::string_view key = {});
  void end_object();
  void begin_array(std::string_view key = {});
  void end_array();

  /// One value of the array that is open.
  template <class T>
  void value(const T& value) {
    separate({});
    append(value);
  }

  /// One key and value of the object that is open.
  template <class T>
  void field(std::string_view key, const T& value) {
    separate(key);
    append(value);
  }

  /// The text so far, and its size. A long text can be drained piece by piece; take() returns the last piece.
  std::string drain() { return std::exchange(text_, {}); }
  std::size_t size() const { return text_.size(); }
  /// Has `sink` called with each piece of the text when it has some 64 KiB; take() returns the rest.
  void drain_to(std::function<void(std::string_view)> sink) { sink_ = std::move(sink); }

  /// The text, with the end of its last line. All objects and arrays must be closed.
  std::string take();

 private:
  struct Level {
    bool array;
    bool empty = true;
    bool plain = true;  ///< holds no object or array so far
  };

  void open(std::string_view key, char bracket);
  void close(char bracket);
  void separate(std::string_view key, bool nests = false);
  void break_line();
  void append(std::string_view text);
  void append(const char* text) { append(std::string_view(text)); }
  void append(const std::string& text) { append(std::string_view(text)); }
  void append(bool truth) { text_ += truth ? "true" : "false"; }
  void append(double number);
  void append(std::integral auto number) {
    std::array<char, 24> digits;
    text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  }
  void append(std::nullopt_t) { text_ += "null"; }
  template <class T>
  void append(const std::optional<T>& value) {
    value ? append(*value) : append(std::nullopt);
  }

  static constexpr std::size_t piece_size = 64 << 10;

  std::string text_;
  std::vector<Level> levels_;
  std::function<void(std::string_view)> sink_;  // or none
};

}  // namespace cmt::output
