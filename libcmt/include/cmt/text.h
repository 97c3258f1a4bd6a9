/// Writes an event as the line of a text trace.
#pragma once

#include <string>

#include "cmt/event.h"

namespace cmt {

/// Appends the canonical line of an event (format-spec/text.md), without the line's end.
void append_line(std::string& out, const Event& event);

/// The canonical line of an event: "malloc(8) = 81d220b48<6655>".
inline std::string to_line(const Event& event) {
  std::string line;
  append_line(line, event);
  return line;
}

}  // namespace cmt
