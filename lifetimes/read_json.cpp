// Reads a summary back from its JSON, for --merge. No other file of this tool includes nlohmann/json, which costs
// seconds to compile.

#include <stdexcept>
#include <vector>

#include "cmt/error.h"
#include "libcmt/trace/files.h"
#include "lifetimes/summary.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/read_fields.h"

namespace cmt::lifetimes {

void place_in_use(std::vector<SizeSummary>& sizes, const SizeSummary& size) {
  sizes[output::class_index<SizeClasses>(size.size_bytes_min)] = size;
}

namespace {

using output::Json;
using output::member;

Summary read_summary(const Json& json) {
  if (member(json, "schema").get<std::string>() != schema) {
    throw std::invalid_argument("not of schema " + std::string(schema));
  }
  const std::string unit = member(json, "clock_unit").get<std::string>();
  const auto clock = heap::Clock::parse(unit == "ns" ? "time" : unit);
  if (!clock) throw std::invalid_argument("an unknown unit: " + unit);
  Summary summary(*clock);
  output::FieldReader::read_object(json, summary);
  return summary;
}

}  // namespace

std::vector<Summary> read_json(const std::string& path) {
  const auto input = command::open_decompressed(path);
  const std::string_view text = command::read_whole(*input);
  try {
    const Json json = Json::parse(text);
    std::vector<Summary> summaries;
    if (!json.is_array()) return {read_summary(json)};
    for (const Json& each : json) summaries.push_back(read_summary(each));
    if (summaries.empty()) throw std::invalid_argument("an empty list");
    return summaries;
  } catch (const Json::parse_error& error) {
    throw FormatError(input->place(error.byte == 0 ? 0 : error.byte - 1), "not valid JSON");
  } catch (const Json::exception& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  } catch (const std::invalid_argument& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  }
}

}  // namespace cmt::lifetimes
