#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "open_log.h"
#include "slice.h"
#include "toolkit/command/command_line.h"

namespace trace2cmt {

/// The form to write.
enum class To { cmt, text, legacy, rep, csv, parquet };

/// Whether a form is for machines alone.
constexpr bool is_binary(To to) { return to == To::cmt || to == To::legacy || to == To::parquet; }

struct Options {
  enum class Task { convert, info, verify };

  Task task = Task::convert;
  bool json = false;
  std::vector<std::string> inputs{"-"};
  From from;
  std::string output = "-";
  To to = To::cmt;
  int level = 3;
  bool strict = false;
  std::optional<SliceRange> slice;
  std::set<std::uint32_t> threads;  ///< none: all
  bool anonymise = false;
};

extern const char* const help_text;
extern const std::vector<cmt::command::Option> known_options;

/// Throws cmt::command::UsageError.
Options options_of(const cmt::command::CommandLine& line);

}  // namespace trace2cmt
