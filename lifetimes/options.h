#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "heap/clock.h"

namespace cmt::lifetimes {

/// What the command line of lifetimes asks for.
struct Options {
  enum class Command { annotate, summarise, count, merge, help, version };
  enum class Form { text, json, csv };

  Command command = Command::annotate;
  std::vector<std::string> paths{"-"};  ///< one, but for merge
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  Form form = Form::text;  ///< of a summary
  bool leaks = false;
  bool totals = false;
  bool strict = false;
};

/// The command line was wrong; what() says how.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws UsageError.
Options parse_options(int argc, char** argv);

extern const char help_text[];

}  // namespace cmt::lifetimes
