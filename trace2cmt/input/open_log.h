#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "trace2cmt/formats/log_format.h"

namespace trace2cmt {

/// What is to be read, and how.
struct From {
  std::string format;                ///< of --from; empty: told by content
  std::optional<std::uint64_t> pid;  ///< of --pid
};

/// The names that --from takes: the formats of other tools, and those of these.
std::vector<std::string_view> format_names();

/// A reader of any trace or log, compressed or not; `path` "-" is standard input. Its read() throws SeveralProcesses
/// where a log holds more than one and none was chosen.
cmt::Reader open_log(const std::string& path, const From& from, cmt::ReadOptions options);

/// The same of an open file, which is taken over.
cmt::Reader open_log(int fd, const std::string& name, const From& from, cmt::ReadOptions options);

/// Whether a path is a file, not a pipe or standard input.
bool can_be_read_again(const std::string& path);

/// The processes in a log, by rising number.
std::vector<std::uint64_t> processes_in(const std::string& path, const From& from);

}  // namespace trace2cmt
