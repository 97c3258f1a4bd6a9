#pragma once

#include <stdexcept>
#include <string>

#include "overhead/annotate.h"

namespace cmt::overhead {

/// What the command line of overhead asks for.
struct Options {
  enum class Command { annotate, summarise, help, version };
  enum class Form { text, json, csv };

  Command command = Command::annotate;
  std::string path = "-";
  Annotator::Settings annotation{};  ///< its page size is the summary's too
  Form form = Form::text;            ///< of a summary
  bool leaks = false;
  bool strict = false;
};

/// The command line was wrong; what() says how.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws UsageError.
Options parse_options(int argc, char** argv);

extern const char help_text[];

}  // namespace cmt::overhead
