#pragma once

#include <string>
#include <vector>

#include "overhead/annotate.h"
#include "toolkit/command/command_line.h"

namespace cmt::overhead {

/// What the command line of overhead asks for.
struct Options {
  enum class Command { annotate, summarise };
  enum class Form { text, json, csv };

  Command command = Command::annotate;
  std::string path = "-";
  Annotator::Settings annotation{};  ///< its page size is the summary's too
  Form form = Form::text;            ///< of a summary
  bool leaks = false;
  bool strict = false;
  std::string plot{};  ///< where a picture goes; empty: there is none
  bool prints = true;  ///< the summary too, or only a picture
};

/// What parse_options() knows.
std::vector<command::Option> known_options();

/// Throws command::UsageError.
Options parse_options(const command::CommandLine& line);

extern const char help_text[];

}  // namespace cmt::overhead
