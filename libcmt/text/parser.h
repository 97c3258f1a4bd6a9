/// Reads the lines of a text trace (format-spec/text.md). parse_plain() is fast for common lines, Parser reads all of
/// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/event.h"

namespace cmt::text {

/// Limits of format-spec/text.md.
inline constexpr std::size_t label_limit = 4096;
inline constexpr std::size_t metadata_limit = 1024;
inline constexpr std::size_t metadata_key_limit = 256;
inline constexpr std::size_t metadata_value_limit = 65536;
inline constexpr std::uint64_t attribute_limit = (std::uint64_t{1} << 62) - 1;
inline constexpr std::size_t line_limit = 1 << 20;
inline constexpr std::size_t module_path_limit = 65536;
inline constexpr std::size_t build_id_limit = 256;

/// What one line of a text trace is.
struct Line {
  enum class Sort { event, blank, metadata, wrong };
  Sort sort = Sort::blank;

  Event event;  ///< of an event. A block given by its address alone has the tag 0; a stack is the text's number
  std::string_view key;  ///< of metadata: `#cmt key=value`
  std::string value;
  std::string_view expected;  ///< of a wrong line: what should have stood there, for a message
};

/// Reads lines by the grammar of format-spec/text.md, and what is tolerated beside it. Keeps the label of the last
/// line, so an event's label is valid until the next.
class Parser {
 public:
  /// One line without its end. Never throws: a line that is no event is `wrong`.
  const Line& parse(std::string_view line);

 private:
  void parse_metadata(std::string_view rest);

  Line line_;
  std::string label_;
};

/// The line without annotation, comment, blanks at its end and CR: what an annotator echoes.
std::string_view without_annotation(std::string_view line);

/// Reads the line at the begin of `lines`, whole lines in all, if it is one of the common ones in their canonical form:
/// malloc, free, calloc, realloc, operator new and delete, with at most a thread, a time, a usable size and a stack.
/// Returns the length of the line, without its LF, and fills in `event`, which holds its defaults. For any other line,
/// which may be right or wrong, returns 0, and the event holds anything.
std::size_t parse_plain(std::string_view lines, Event& event);

}  // namespace cmt::text
