#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "cmt/header.h"

namespace trace2cmt {

struct Options {
  std::string input = "-";
  std::string output = "-";
  cmt::Format to = cmt::Format::cmt;
  int level = 3;
  bool strict = false;
};

/// Wrong use: one line.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

extern const char* const help_text;

/// Reads the command line. Nothing where --help or --version was asked for and has been answered. Throws UsageError.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace trace2cmt
