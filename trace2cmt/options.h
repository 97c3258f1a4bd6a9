#pragma once

#include <string>
#include <vector>

#include "cmt/header.h"
#include "command/command_line.h"

namespace trace2cmt {

struct Options {
  std::string input = "-";
  std::string output = "-";
  cmt::Format to = cmt::Format::cmt;
  int level = 3;
  bool strict = false;
};

extern const char* const help_text;
extern const std::vector<cmt::command::Option> known_options;

/// Throws cmt::command::UsageError.
Options options_of(const cmt::command::CommandLine& line);

}  // namespace trace2cmt
