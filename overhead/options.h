#pragma once

#include <stdexcept>
#include <string>

#include "overhead/annotate.h"

/// What the command line of overhead asks for.
struct Options {
  std::string path = "-";
  OverheadAnnotator::Settings annotation;
  bool leaks = false;
  bool strict = false;
  bool help = false;
  bool version = false;
};

/// The command line was wrong; what() says how.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws UsageError.
Options parse_options(int argc, char** argv);

extern const char help_text[];
