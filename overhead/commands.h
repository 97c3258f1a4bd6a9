#pragma once

#include <string>
#include <string_view>

#include "overhead/options.h"

namespace cmt::overhead {

/// Each reads what `options` names and writes its answer to standard output; they throw FormatError and
/// std::system_error.
void annotate(const Options& options);
void summarise(const Options& options);

/// Writes a line to standard error.
void say(const std::string& words);

}  // namespace cmt::overhead
