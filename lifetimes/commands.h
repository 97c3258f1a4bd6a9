#pragma once

#include <string>
#include <string_view>

#include "lifetimes/options.h"

namespace cmt::lifetimes {

/// Each reads what `options` names and writes its answer to standard output; they throw FormatError and
/// std::system_error.
void annotate(const Options& options);
void summarise(const Options& options);
void count(const Options& options);
void merge(const Options& options);

/// Writes a line to standard error.
void say(const std::string& words);

}  // namespace cmt::lifetimes
