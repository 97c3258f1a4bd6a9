/// Reads the JSON that other tools wrote about the same run: cmtreplay, overhead and cmtwatch. The files may come from
/// anyone, so depth, schema and figures are checked.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "toolkit/output/json.h"

namespace cmt::report {

using Json = nlohmann::ordered_json;

/// Reads the report of cmtreplay --json. Throws FormatError for anything else, and std::system_error.
Json read_replay(const std::string& path);

/// Reads the report of overhead --json. Throws as read_replay().
Json read_overhead(const std::string& path);

/// Reads the report of cmtwatch run --json or export --json, or the recording itself. A recording becomes the memory of
/// all processes at each moment, in the form of cmt.kinds/1 without kinds. Throws as read_replay().
Json read_watch(const std::string& path);

/// Writes a value as a field of the object that is open.
void write_json(output::JsonWriter& json, std::string_view key, const Json& value);

}  // namespace cmt::report
