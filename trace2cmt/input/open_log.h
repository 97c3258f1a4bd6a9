/// Opens a trace, or the log of another tool, as a cmt::Reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "trace2cmt/formats/log_format.h"

namespace cmt::trace2cmt {

/// Options for reading an input.
struct From {
  std::string format;                  ///< a name that --from takes; empty: recognised by content
  std::optional<std::uint64_t> pid{};  ///< the process to read, in a log of several processes
  /// If not null, counts the records of a log that are no calls, by their kind.
  LeftOut* left_out = nullptr;
};

/// The names that --from takes: our own forms, and the formats of other tools.
std::vector<std::string_view> format_names();

/// A reader of a trace or log, compressed or not; `path` "-" is standard input. Its read() throws SeveralProcesses if a
/// log has more than one process and none was chosen.
cmt::Reader open_log(const std::string& path, const From& from, cmt::ReadOptions options);

/// The same for an open file, which the reader closes.
cmt::Reader open_log(int fd, const std::string& name, const From& from, cmt::ReadOptions options);

/// Whether a path names a regular file.
bool can_be_read_again(const std::string& path);

/// The processes in a log, by rising number.
std::vector<std::uint64_t> processes_in(const std::string& path, const From& from);

}  // namespace cmt::trace2cmt
