// Reads the tables of a recording of cmtwatch, after a check that the file is one of a known version.

#include "cmtreport/input/read_recording.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "cmt/error.h"
#include "toolkit/database/database.h"

namespace cmt::report {
namespace {

constexpr std::string_view database_magic = "SQLite format 3";

/// The recordings of cmtwatch have the application id "cmtw", and this version of their tables.
constexpr std::int64_t application_id = 0x636d7477, recording_version = 2;

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
  return sums.series(ticks);
} catch (const database::DatabaseError& error) {
  // The text of the error begins with the path, which a FormatError has by itself.
  throw FormatError(path, "not a recording of cmtwatch: " + std::string(error.what()).substr(path.size() + 2));
}

}  // namespace cmt::report
