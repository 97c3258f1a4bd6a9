/// Opens an input as a trace: one of our own forms, or the log of another tool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/trace/source.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {

/// Options for reading an input.
struct From {
  std::string format{};                ///< a name that --from takes; empty: recognised by content
  std::optional<std::uint64_t> pid{};  ///< the process to read, in a log of several processes
  LeftOut* left_out = nullptr;         ///< if not null, counts the records of a log that are no calls
  bool offers_pid = false;             ///< the user can choose a process: SeveralProcesses is thrown, not FormatError
};

/// The names that --from takes: our own forms, and the formats of other tools.
std::vector<std::string_view> format_names();

/// The source of an input, by its content or as the options say. Throws FormatError, and SeveralProcesses if a log has
/// more than one process and none was chosen.
std::unique_ptr<Source> choose_any_source(std::unique_ptr<Input> input, const From& from, const ReadOptions& options,
                                          DefectLog& log);

/// The processes in a log, by rising number. `format`: see From::format.
std::vector<std::uint64_t> processes_in(std::unique_ptr<Input> input, const std::string& format);

}  // namespace cmt::logs
