#pragma once

#include <string>
#include <vector>

#include "libcmt/heap/clock.h"
#include "toolkit/command/command_line.h"

namespace cmt::lifetimes {

/// What the command line of lifetimes asks for.
struct Options {
  enum class Command { annotate, summarise, count, merge };
  enum class Form { text, json, csv };

  Command command = Command::annotate;
  std::vector<std::string> paths{"-"};  ///< one, but for merge
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  Form form = Form::text;  ///< of a summary
  bool leaks = false;
  bool totals = false;
  bool strict = false;
  std::string plot{};  ///< where a picture goes; empty: there is none
  bool prints = true;  ///< the summary too, or only a picture
};

/// What parse_options() knows.
std::vector<command::Option> known_options();

/// Throws command::UsageError.
Options parse_options(const command::CommandLine& line);

extern const char help_text[];

}  // namespace cmt::lifetimes
