#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cmt/event.h"

namespace cmt::text {

/// What one line of a text trace is.
struct Line {
  enum class Sort { event, blank, metadata, wrong };
  Sort sort = Sort::blank;

  Event event;           ///< of an event. A block given by its address alone has the tag 0
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

}  // namespace cmt::text
