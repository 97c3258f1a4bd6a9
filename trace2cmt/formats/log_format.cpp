#include "trace2cmt/formats/format.h"

#include <algorithm>
#include <array>

#include "libcmt/text/parser.h"

namespace trace2cmt {
namespace {

/// A line of the tools' own text that no other format has: it names tags, or is of the header.
bool is_own_text(std::string_view line) {
  if (line.starts_with("#cmt ")) return true;
  if (line.find('<') == std::string_view::npos) return false;
  cmt::text::Parser parser;
  const cmt::text::Line& parsed = parser.parse(line);
  return parsed.sort == cmt::text::Line::Sort::event && (parsed.event.tag != 0 || parsed.event.old_tag != 0);
}

}  // namespace

std::span<const LogFormat> log_formats() {
  static const std::array formats{android_format, dtrace_format, heaptrack_format, kdump_format,   logalloc_format,
                                  ltrace_format,  mtrace_format, rep_format,       valgrind_format};
  return formats;
}

const LogFormat* find_format(std::string_view name) {
  const auto formats = log_formats();
  const auto found = std::find_if(formats.begin(), formats.end(), [&](const LogFormat& f) { return f.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

const LogFormat* detect_format(std::string_view start) {
  while (!start.empty()) {
    const std::size_t length = std::min(start.find('\n'), start.size());
    std::string_view line = start.substr(0, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    start.remove_prefix(std::min(length + 1, start.size()));
    if (is_own_text(line)) return nullptr;
    for (const LogFormat& format : log_formats()) {
      if (format.is_telling(line)) return &format;
    }
  }
  return nullptr;
}

}  // namespace trace2cmt
