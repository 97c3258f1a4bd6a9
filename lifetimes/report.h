#pragma once

#include <string>

#include "lifetimes/summary.h"
#include "toolkit/picture/picture.h"

namespace cmt::lifetimes {

/// For people: what was allocated, how long it lived, and a line for every class of sizes.
std::string to_text(const Summary& summary);

/// For programs: schema "cmt.lifetimes/1", described in summary_json.cpp. read_json() takes it back.
std::string to_json(const Summary& summary);

/// For spreadsheets: the classes of sizes, a line of names first.
std::string to_csv(const Summary& summary);

/// To look at.
output::Picture to_picture(const Summary& summary);

/// A summary from its JSON. `path` is a file, "-" standard input. Throws FormatError and std::system_error.
Summary read_json(const std::string& path);

}  // namespace cmt::lifetimes
