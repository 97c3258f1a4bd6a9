#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trace2cmt/formats/findings.h"

namespace trace2cmt {

/// Reads the lines of one log, in order.
class LogParser {
 public:
  virtual ~LogParser() = default;

  /// One line without its end: tells `found` its events, that it is wrong, or nothing where it is not about memory.
  virtual void parse(std::string_view line, Findings& found) = 0;

  /// The log is at its end.
  virtual void end(Findings&) {}
};

/// A format that another tool writes, all of it lines of text.
struct LogFormat {
  std::string_view name;      ///< as --from takes it
  std::string_view recorder;  ///< as the header tells it, unless the log does

  /// Whether a line is one that only this format has: by these a log is known.
  bool (*is_telling)(std::string_view line);

  std::unique_ptr<LogParser> (*make_parser)();
};

/// All of them, a file each in this folder.
std::span<const LogFormat> log_formats();

/// The format that a log's first bytes tell, or nullptr.
const LogFormat* detect_format(std::string_view start);

/// By its name, or nullptr.
const LogFormat* find_format(std::string_view name);

/// How many bytes detect_format() is to be shown.
inline constexpr std::size_t detection_bytes = 64 * 1024;

extern const LogFormat android_format, dtrace_format, heaptrack_format, kdump_format, logalloc_format, ltrace_format,
    mtrace_format, rep_format, valgrind_format;

template <class Parser>
std::unique_ptr<LogParser> make_parser() {
  return std::make_unique<Parser>();
}

}  // namespace trace2cmt
