// The one file that includes nlohmann/json, which costs seconds a translation unit.

#include "cmtwatch/recording/memory_series.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cmt/error.h"
#include "cmtwatch/recording/moment.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/sample/process_set.h"
#include "toolkit/database/database.h"

namespace cmt::watch {
namespace {

using Json = nlohmann::json;

constexpr double mebibyte = 1 << 20;

constexpr double time_max = 0x1p61, bytes_max = 0x1p57;  // nanoseconds: 73 years; the addresses of a process

std::int64_t time_of(const Json& number) {
  if (!number.is_number() || !(std::abs(number.get<double>()) <= time_max))
    throw std::out_of_range("the time " + number.dump() + " is beyond any run");
  return number.get<std::int64_t>();
}

std::uint64_t bytes_of(const Json& number) {
  if (!number.is_number() || !(number.get<double>() >= 0 && number.get<double>() <= bytes_max))
    throw std::out_of_range(number.dump() + " bytes are beyond any memory");
  return number.get<std::uint64_t>();
}

MemorySeries from_watch(const Json& watch) {
  MemorySeries series;
  series.metric = watch.at("metric").get<std::string>();
  series.peak_missed = watch.value("peak_missed", false);
  for (const Json& sample : watch.at("samples")) {
    if (sample.at("bytes").is_null()) continue;  // could not be read
    series.time_ns.push_back(time_of(sample.at("begin_ns")));
    series.bytes.push_back(bytes_of(sample.at("bytes")));
  }
  return series;
}

/// LL-Tracket's form: [[2000, 12.5], [1000, 11.0]], or the same under a key.
MemorySeries from_pairs(const Json& pairs) {
  MemorySeries series;
  for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
    series.time_ns.push_back(time_of(std::round(pair->at(0).get<double>() * 1e6)));
    series.bytes.push_back(bytes_of(std::round(pair->at(1).get<double>() * mebibyte)));
  }
  if (!std::is_sorted(series.time_ns.begin(), series.time_ns.end())) throw std::out_of_range("times do not fall");
  return series;
}

/// The index of a column in the rows of an exported recording.
std::size_t column(const Json& recording, const char* rows, const char* name) {
  const Json& names = recording.at("columns").at(rows);
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw std::out_of_range(std::string("no column ") + name);
  return static_cast<std::size_t>(at - names.begin());
}

std::optional<std::uint64_t> bytes_in(const Json& row, std::size_t column) {
  const Json& bytes = row.at(column);
  return bytes.is_null() ? std::nullopt : std::optional(bytes_of(bytes));
}

/// As from_recording().
MemorySeries from_export(const Json& recording) {
  const std::size_t tick_of = column(recording, "samples", "tick_id"),
                    proportional = column(recording, "samples", "proportional_bytes"),
                    resident = column(recording, "samples", "resident_bytes");
  const std::size_t id = column(recording, "ticks", "id"), begin = column(recording, "ticks", "begin_ns");
  std::map<std::int64_t, MemorySum> sums;
  MemorySum all;
  for (const Json& process : recording.at("processes")) {
    for (const Json& sample : process.at("samples")) {
      for (MemorySum* const sum : {&sums[sample.at(tick_of).get<std::int64_t>()], &all})
        sum->add(bytes_in(sample, proportional), bytes_in(sample, resident));
    }
  }
  MemorySeries series{.name = {}, .metric = std::string(all.metric()), .time_ns = {}, .bytes = {}};
  for (const Json& tick : recording.at("ticks")) {
    const auto sum = sums.find(tick.at(id).get<std::int64_t>());
    if (sum == sums.end()) continue;
    series.time_ns.push_back(time_of(tick.at(begin)));
    series.bytes.push_back(sum->second.bytes());
  }
  return series;
}

MemorySeries from_json(const Json& json) {
  if (json.is_object() && json.value("schema", "") == "cmt.recording/1") return from_export(json);
  if (json.is_object() && json.value("schema", "") == "cmt.watch/1") return from_watch(json);
  if (json.is_array()) return from_pairs(json);
  for (const auto& [key, value] : json.items()) {
    if (value.is_array() && !value.empty() && value[0].is_array()) return from_pairs(value);
  }
  throw std::out_of_range("no series of memory");
}

MemorySeries from_recording(const std::string& path) {
  database::Database database(path, database::Database::Mode::read);
  check_recording(database, path);
  MemorySeries series;
  MemorySum all;
  database::Statement select(
      database,
      "select begin_ns, sum(coalesce(proportional_bytes, resident_bytes)) as bytes, max(proportional_bytes), "
      "max(resident_bytes) filter (where proportional_bytes is null) "
      "from tick join process_sample on tick_id = tick.id group by tick.id order by tick.id");
  while (select.step()) {
    series.time_ns.push_back(select.time_ns(0));
    series.bytes.push_back(select.amount(1));
    all.add(select.bytes_or_null(2), std::nullopt);
    all.add(std::nullopt, select.bytes_or_null(3));
  }
  series.metric = all.metric();
  series.peak_missed = !missed_peaks(database, std::nullopt).empty();
  return series;
}

}  // namespace

std::size_t MemorySeries::peak_index() const {
  return bytes.empty() ? 0 : static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

MemorySeries parse_series(std::string_view text, const std::string& path) {
  try {
    MemorySeries series = from_json(Json::parse(text));
    series.name = path;
    return series;
  } catch (const Json::exception&) {
    throw FormatError(path, "neither a recording nor a series of memory in JSON");
  } catch (const std::out_of_range& error) {
    throw FormatError(path, error.what());
  }
}

MemorySeries read_series(const std::string& path) {
  constexpr std::string_view magic = "SQLite format 3";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  std::string text(magic.size(), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text != magic) {  // else no more of it is read: a recording may be larger than the memory
    text.append(std::istreambuf_iterator<char>(file), {});
    return parse_series(text, path);
  }
  MemorySeries series = from_recording(path);
  series.name = path;
  return series;
}

}  // namespace cmt::watch
