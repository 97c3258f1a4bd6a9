/// The command line of trace2cmt as a struct.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "toolkit/command/command_line.h"
#include "trace2cmt/filters/filter.h"
#include "trace2cmt/input/open_log.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {

struct Options {
  enum class Task { convert, info, verify };

  Task task = Task::convert;
  bool json = false;
  std::vector<std::string> inputs{"-"};
  From from;
  std::string output = "-";
  const OutputForm* form = nullptr;
  int level = 3;
  unsigned jobs = 1;  ///< threads
  bool strict = false;
  std::optional<cmt::trace::SliceRange> slice;
  std::set<std::uint32_t> threads;  ///< empty: all threads
  bool anonymise = false;
  std::uint64_t time_step_ns = 0;  ///< times are rounded down to its multiples; 0: they are not
  bool symbolise = false;
  std::vector<std::string> debug_directories{};
  std::string root{};  ///< modules are looked for below this folder; empty: /
};

extern const char* const help_text;
extern const std::vector<cmt::command::Option> known_options;

/// Throws cmt::command::UsageError.
Options options_of(const cmt::command::CommandLine& line);

}  // namespace cmt::trace2cmt
