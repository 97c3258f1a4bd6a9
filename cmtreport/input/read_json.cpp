// Reads and checks the JSON of other tools, and sums up an exported recording of cmtwatch.

#include "cmtreport/input/read_json.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cmt/error.h"
#include "cmtreport/input/read_recording.h"
#include "toolkit/command/open_trace.h"

namespace cmt::report {
namespace {

constexpr int depth_max = 64;  // the deepest report that is read; write_json() is recursive
constexpr std::string_view sqlite_magic = "SQLite format 3";

/// Reads a file that is a JSON object of one of these schemas.
Json read_object(const std::string& path, std::initializer_list<std::string_view> schemas, const std::string& what) {
  const auto input = command::open_decompressed(path);
  const std::string_view text = command::read_whole(*input);
  if (text.starts_with(sqlite_magic))
    throw FormatError(path, "a recording of cmtwatch (cmtwatch export --json writes it as JSON, which is read here)");
  if (text.empty()) throw FormatError(path, "the file is empty (" + what + " is expected: did that tool fail?)");
  const auto limit_depth = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > depth_max) throw FormatError(path, "not " + what + ": too deep");
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, limit_depth);
  } catch (const Json::parse_error& error) {
    throw FormatError(input->place(error.byte == 0 ? 0 : error.byte - 1), "not valid JSON; expected " + what);
  } catch (const Json::exception& error) {  // such as a number beyond all that a double holds
    throw FormatError(path, std::string("not ") + what + ": " + error.what());
  }
  const auto schema = json.is_object() ? json.find("schema") : json.end();
  const bool is_known = json.is_object() && schema != json.end() && schema->is_string() &&
                        std::find(schemas.begin(), schemas.end(), schema->get<std::string>()) != schemas.end();
  if (!is_known) throw FormatError(path, "not " + what);
  return json;
}

std::size_t column_of(const Json& recording, const char* rows, const char* name) {
  const Json& names = recording.at("columns").at(rows);
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw std::out_of_range(std::string("no column ") + name);
  return static_cast<std::size_t>(at - names.begin());
}

std::uint64_t count_of(const Json& number) {
  if (!number.is_number_unsigned()) throw std::out_of_range("a figure that is no whole number from 0 on");
  return number.get<std::uint64_t>();
}

RecordedParts parts_of_recording(const Json& recording) {
  const std::size_t tick_of = column_of(recording, "parts", "tick_id"),
                    bytes_of = column_of(recording, "parts", "bytes");
  RecordedParts parts;
  for (const Json& process : recording.at("processes")) {
    for (const Json& part : process.at("parts")) {
      for (const Json& sample : part.at("samples")) {
        const auto bytes = sample.at(bytes_of).get<std::int64_t>();
        parts.add(sample.at(tick_of).get<std::int64_t>(), part.at("name").get<std::string>(),
                  static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
      }
    }
  }
  return parts;
}

/// The proportional memory of all processes at each moment, or the resident memory where the proportional is unknown.
Json series_of_recording(const Json& recording) {
  const std::size_t tick_of = column_of(recording, "samples", "tick_id"),
                    proportional = column_of(recording, "samples", "proportional_bytes"),
                    resident = column_of(recording, "samples", "resident_bytes"),
                    id = column_of(recording, "ticks", "id"), begin = column_of(recording, "ticks", "begin_ns");
  const auto bytes_of = [](const Json& bytes) {
    return bytes.is_null() ? std::nullopt : std::optional(count_of(bytes));
  };
  RecordedSums sums;
  for (const Json& process : recording.at("processes")) {
    for (const Json& sample : process.at("samples"))
      sums.add(sample.at(tick_of).get<std::int64_t>(), bytes_of(sample.at(proportional)),
               bytes_of(sample.at(resident)));
  }
  std::vector<std::pair<std::int64_t, std::uint64_t>> ticks;
  for (const Json& tick : recording.at("ticks"))
    ticks.emplace_back(tick.at(id).get<std::int64_t>(), count_of(tick.at(begin)));
  Json series = sums.series(ticks);
  if (recording.at("columns").contains("parts")) parts_of_recording(recording).add_to(series, ticks);
  return series;
}

}  // namespace

Json read_replay(const std::string& path) {
  return read_object(path, {"cmt.replay/1"}, "a report of cmtreplay --json");
}

Json read_overhead(const std::string& path) {
  return read_object(path, {"cmt.overhead/1"}, "a report of overhead --json");
}

Json read_watch(const std::string& path) {
  if (is_database(path)) return read_recording(path);
  Json json =
      read_object(path, {"cmt.watch/1", "cmt.kinds/1", "cmt.recording/1"}, "a recording or a report of cmtwatch");
  if (json.at("schema") != "cmt.recording/1") return json;
  try {
    return series_of_recording(json);
  } catch (const Json::exception& error) {
    throw FormatError(path, std::string("not an exported recording: ") + error.what());
  } catch (const std::out_of_range& error) {
    throw FormatError(path, std::string("not an exported recording: ") + error.what());
  }
}

void write_json(output::JsonWriter& json, std::string_view key, const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      json.begin_object(key);
      for (const auto& [name, member] : value.items()) {
        if (!name.empty()) write_json(json, name, member);  // no report has such a key
      }
      return json.end_object();
    case Json::value_t::array:
      json.begin_array(key);
      for (const Json& element : value) write_json(json, {}, element);
      return json.end_array();
    case Json::value_t::string:
      return json.field(key, value.get<std::string>());
    case Json::value_t::boolean:
      return json.field(key, value.get<bool>());
    case Json::value_t::number_integer:
      return json.field(key, value.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return json.field(key, value.get<std::uint64_t>());
    case Json::value_t::number_float:
      return json.field(key, value.get<double>());
    default:
      return json.field(key, std::nullopt);
  }
}

}  // namespace cmt::report
