// Reads the tables of a recording of cmtwatch, after a check that the file is one of a known version.

#include "cmtreport/input/read_recording.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "cmt/error.h"
#include "toolkit/database/database.h"

namespace cmt::report {
namespace {

constexpr std::string_view database_magic = "SQLite format 3";

/// The recordings of cmtwatch have the application id "cmtw", and this version of their tables.
constexpr std::int64_t application_id = 0x636d7477, recording_version = 2;

/// Throws FormatError. The text of the error begins with the path, which a FormatError has by itself.
[[noreturn]] void refuse(const std::string& path, const database::DatabaseError& error) {
  throw FormatError(path, "not a recording of cmtwatch: " + std::string(error.what()).substr(path.size() + 2));
}

}  // namespace

void RecordedSums::add(std::int64_t tick, std::optional<std::uint64_t> proportional,
                       std::optional<std::uint64_t> resident) {
  const auto& bytes = proportional ? proportional : resident;
  if (!bytes) return;
  (proportional ? has_proportional_ : has_resident_) = true;
  sums_[tick] += *bytes;
}

Json RecordedSums::series(const std::vector<std::pair<std::int64_t, std::uint64_t>>& ticks) const {
  Json times = Json::array(), figures = Json::array();
  for (const auto& [tick, time_ns] : ticks) {
    const auto sum = sums_.find(tick);
    times.push_back(time_ns);
    figures.push_back(sum == sums_.end() ? Json() : Json(sum->second));
  }
  return {{"schema", "cmt.kinds/1"},
          {"metric", has_proportional_ && has_resident_ ? "pss or rss"
                     : has_proportional_                ? "pss"
                                                        : "rss"},
          {"time_ns", times},
          {"bytes", figures},
          {"kinds", Json::array()}};
}

void RecordedParts::add(std::int64_t tick, const std::string& name, std::uint64_t bytes) {
  looks_.insert(tick);
  bytes_[name][tick] += bytes;
}

void RecordedParts::add_to(Json& series, const std::vector<std::pair<std::int64_t, std::uint64_t>>& ticks) const {
  constexpr std::size_t bands_max = 8;
  std::vector<std::pair<std::uint64_t, const std::string*>> order;
  for (const auto& [name, at] : bytes_) {
    std::uint64_t most = 0;
    for (const auto& [tick, bytes] : at) most = std::max(most, bytes);
    if (most != 0) order.emplace_back(most, &name);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Json times = Json::array(), parts = Json::array();
  std::vector<std::int64_t> looks;
  for (const auto& [tick, time_ns] : ticks) {
    if (!looks_.contains(tick)) continue;
    looks.push_back(tick);
    times.push_back(time_ns);
  }
  const std::size_t named = order.size() <= bands_max ? order.size() : bands_max - 1;
  std::vector<std::uint64_t> others(looks.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& at = bytes_.at(*order[i].second);
    std::vector<std::uint64_t> bytes;
    for (const std::int64_t look : looks) bytes.push_back(at.contains(look) ? at.at(look) : 0);
    if (i < named) parts.push_back({{"name", *order[i].second}, {"bytes", bytes}});
    for (std::size_t look = 0; i >= named && look < looks.size(); ++look) others[look] += bytes[look];
  }
  if (named < order.size()) parts.push_back({{"name", "others"}, {"bytes", others}});
  series["parts_time_ns"] = std::move(times);
  series["parts"] = std::move(parts);
}

bool is_database(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;  // a pipe can be read only once
  std::array<char, database_magic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == database_magic;
}

Json read_recording(const std::string& path) try {
  database::Database recording(path, database::Database::Mode::read);
  if (recording.number("pragma application_id") != application_id)
    throw FormatError(path, "not a recording of cmtwatch");
  const std::int64_t version = recording.number("pragma user_version");
  if (version != recording_version)
    throw FormatError(path,
                      "a recording of version " + std::to_string(version) + ", which this cmtreport does not know");
  RecordedSums sums;
  database::Statement samples(recording, "select tick_id, proportional_bytes, resident_bytes from process_sample");
  while (samples.step()) sums.add(samples.number(0), samples.bytes_or_null(1), samples.bytes_or_null(2));
  std::vector<std::pair<std::int64_t, std::uint64_t>> ticks;
  database::Statement begins(recording, "select id, begin_ns from tick order by id");
  while (begins.step()) {
    const std::int64_t time_ns = begins.time_ns(1);
    if (time_ns < 0) throw FormatError(path, "a time below 0");
    ticks.emplace_back(begins.number(0), static_cast<std::uint64_t>(time_ns));
  }
  Json series = sums.series(ticks);
  if (recording.number("select count(*) from sqlite_schema where name in ('part', 'part_sample')") == 2) {
    RecordedParts parts;
    database::Statement looks(
        recording, "select tick_id, name, max(bytes, 0) as bytes from part_sample join part on part.id = part_id");
    while (looks.step()) parts.add(looks.number(0), looks.text(1), looks.amount(2));
    parts.add_to(series, ticks);
  }
  return series;
} catch (const database::DatabaseError& error) {
  refuse(path, error);
}

bool has_process(const std::string& path, std::uint64_t pid) try {
  database::Database recording(path, database::Database::Mode::read);
  return recording.number("select count(*) from process where pid = " + std::to_string(pid)) != 0;
} catch (const database::DatabaseError& error) {
  refuse(path, error);
}

}  // namespace cmt::report
