/// Opens a trace, or the log of another tool, as a cmt::Reader.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "trace2cmt/formats/log_format.h"

namespace cmt::trace2cmt {

/// How an input is to be read.
struct From {
  std::string format;                  ///< a name that --from takes; empty: recognised by content
  std::optional<std::uint64_t> pid{};  ///< the process to read, of a log that holds several
  /// Counts a log's records of other kinds than calls, where not null.
  std::map<std::string, std::uint64_t>* left_out = nullptr;
};

/// The names that --from takes: our own forms, and the formats of other tools.
std::vector<std::string_view> format_names();

/// A reader of a trace or log, compressed or not; `path` "-" is standard input. Its read() throws SeveralProcesses
/// where a log holds more than one and none was chosen.
cmt::Reader open_log(const std::string& path, const From& from, cmt::ReadOptions options);

/// The same of an open file, which is closed with the reader.
cmt::Reader open_log(int fd, const std::string& name, const From& from, cmt::ReadOptions options);

/// Whether a path names a regular file.
bool can_be_read_again(const std::string& path);

/// The processes in a log, by rising number.
std::vector<std::uint64_t> processes_in(const std::string& path, const From& from);

}  // namespace cmt::trace2cmt
