#include "cmtreport/input/read_recording.h"

#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "cmt/error.h"

namespace cmt::report {
namespace {

constexpr std::string_view database_magic = "SQLite format 3";

/// Of cmtwatch's recordings: "cmtw", and the version of their tables.
constexpr std::int64_t application_id = 0x636d7477, recording_version = 2;

constexpr int steps_between_calls = 100'000;  // of SQLite's virtual machine

/// A recording that is open. Not to be moved: SQLite has its address.
class WatchDatabase {
 public:
  explicit WatchDatabase(const std::string& path) : path_(path) {
    sqlite3* opened = nullptr;
    const int result = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(opened);
    if (result != SQLITE_OK) fail();
    sqlite3_busy_timeout(opened, 5000);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW})
      sqlite3_db_config(opened, off, 0, nullptr);
    std::error_code none;
    const auto bytes = std::filesystem::file_size(path, none);
    calls_left_ = (20'000'000 + 20 * (none ? 0 : bytes)) / steps_between_calls;
    const auto goes_on = [](void* self) { return static_cast<WatchDatabase*>(self)->calls_left_-- == 0 ? 1 : 0; };
    sqlite3_progress_handler(opened, steps_between_calls, goes_on, this);
  }

  /// Calls `use(row)` for each row; row(i) is a column's number, or nothing for null.
  template <class Use>
  void for_each(const char* query, Use use) {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), query, -1, &prepared, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
    const auto row = [&](int column) -> std::optional<std::int64_t> {
      const int type = sqlite3_column_type(prepared, column);
      if (type == SQLITE_NULL) return std::nullopt;
      const std::int64_t number = sqlite3_column_int64(prepared, column);
      if (type != SQLITE_INTEGER || number < 0) throw FormatError(path_, "a figure that is no whole number from 0 on");
      return number;
    };
    int result = SQLITE_ROW;
    while ((result = sqlite3_step(prepared)) == SQLITE_ROW) use(row);
    if (result != SQLITE_DONE) fail();
  }

  std::int64_t number(const char* query) {
    std::int64_t found = 0;
    for_each(query, [&](const auto& row) { found = row(0).value_or(0); });
    return found;
  }

 private:
  [[noreturn]] void fail() const {
    const int code = handle_ ? sqlite3_errcode(handle_.get()) : SQLITE_NOMEM;
    if (code == SQLITE_INTERRUPT) throw FormatError(path_, "takes longer to read than a recording of its size");
    throw FormatError(path_, std::string("not a recording of cmtwatch: ") +
                                 (handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code)));
  }

  std::string path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
  std::uint64_t calls_left_ = 0;
};

std::optional<std::uint64_t> unsigned_or_none(const std::optional<std::int64_t>& number) {
  return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
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

bool is_database(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;  // what a pipe has can be read only once
  std::array<char, database_magic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == database_magic;
}

Json read_recording(const std::string& path) {
  WatchDatabase recording(path);
  if (recording.number("pragma application_id") != application_id)
    throw FormatError(path, "not a recording of cmtwatch");
  const std::int64_t version = recording.number("pragma user_version");
  if (version != recording_version)
    throw FormatError(path,
                      "a recording of version " + std::to_string(version) + ", which this cmtreport does not know");
  RecordedSums sums;
  recording.for_each("select tick_id, proportional_bytes, resident_bytes from process_sample", [&](const auto& row) {
    sums.add(row(0).value_or(0), unsigned_or_none(row(1)), unsigned_or_none(row(2)));
  });
  std::vector<std::pair<std::int64_t, std::uint64_t>> ticks;
  recording.for_each("select id, begin_ns from tick order by id", [&](const auto& row) {
    ticks.emplace_back(row(0).value_or(0), static_cast<std::uint64_t>(row(1).value_or(0)));
  });
  return sums.series(ticks);
}

}  // namespace cmt::report
