#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "toolkit/output/json.h"

namespace cmt::report {

using Json = nlohmann::ordered_json;

/// What cmtreplay --json has written. Throws FormatError for anything else, and std::system_error.
Json read_replay(const std::string& path);

/// What overhead --json has written. Throws as read_replay().
Json read_overhead(const std::string& path);

/// What cmtwatch run --json or export --json has written, or its recording itself; of a recording, the memory of all
/// processes at each moment, in the form of cmt.kinds/1 without kinds. Throws as read_replay().
Json read_watch(const std::string& path);

/// Writes a value as a field of the object that is open.
void write_json(output::JsonWriter& json, std::string_view key, const Json& value);

}  // namespace cmt::report
