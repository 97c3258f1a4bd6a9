#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace cmt::replay {

/// What the command line says.
struct Options {
  std::vector<std::string> allocators;  ///< as given; libc where none was
  std::string file = "-";
  unsigned runs = 5;
  bool new_trace = false;
  bool json = false;
  bool help = false;
  bool version = false;
};

/// Wrong use: one line, without the tool's name.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse_options(int count, const char* const* arguments);

/// What --help writes.
const char* help_text();

/// The long names of all options.
std::vector<std::string> option_names();

}  // namespace cmt::replay
