/// Reads the lines of a text trace (format-spec/text.md). parse_plain() is fast for common lines, Parser reads all of
/// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/event.h"

namespace cmt::text {

/// The limits that format-spec/text.md sets.
inline constexpr std::size_t label_limit = 4096;
inline constexpr std::size_t metadata_limit = 1024;
inline constexpr std::size_t metadata_key_limit = 256;
inline constexpr std::size_t metadata_value_limit = 65536;
inline constexpr std::uint64_t attribute_limit = (std::uint64_t{1} << 62) - 1;
inline constexpr std::size_t line_limit = 1 << 20;
inline constexpr std::size_t module_path_limit = 65536;
inline constexpr std::size_t build_id_limit = 256;

/// One line of a text trace, parsed.
struct Line {
  enum class Sort { event, blank, metadata, wrong };
  Sort sort = Sort::blank;

  Event event;  ///< if `sort` is event. A block given by its address alone has the tag 0; a stack is the text's number
  std::string_view key;  ///< if `sort` is metadata: `#cmt key=value`
  std::string value;
  std::string_view expected;  ///< if `sort` is wrong: the part that is missing, for a message
};

/// Reads lines by the grammar of format-spec/text.md, and the variants that it tolerates. Keeps the label of the last
/// line, so an event's label is valid until the next line.
class Parser {
 public:
  /// Parses one line, without its LF. Never throws: a line that is no event is `wrong`.
  const Line& parse(std::string_view line);

 private:
  void parse_metadata(std::string_view rest);

  Line line_;
  std::string label_;
};

/// The part of a line that an annotator echoes: without annotation, comment, blanks at its end and CR.
std::string_view without_annotation(std::string_view line);

/// Reads the first of `lines`, which are whole lines, if it is a common line in its canonical form. Common calls are
/// malloc, free, calloc, realloc, operator new and delete. A common line has no attributes but a thread, a time, a
/// usable size and a stack. Fills in `event`, which has its defaults before, and returns the length of the line without
/// its LF. Returns 0 for any other line, right or wrong; the fields of the event are then undefined.
std::size_t parse_plain(std::string_view lines, Event& event);

}  // namespace cmt::text
