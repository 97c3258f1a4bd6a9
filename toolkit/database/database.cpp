// Wraps the calls of SQLite that recordings need, and bounds the work of statements on foreign files.

#include "toolkit/database/database.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace cmt::database {

namespace {

constexpr int steps_between_calls = 100'000;  // of SQLite's virtual machine; some milliseconds

/// The work that any statement of ours may do, in steps: a second or less, and twenty steps for each byte of the file.
/// The longest ones read each row once, in at most ten.
std::uint64_t steps_max(std::uint64_t file_bytes) { return 20'000'000 + 20 * file_bytes; }

/// The error of a file that could not be made. SQLite tries to read it then, and has the error of that: there is no
/// file.
int creation_error(const std::string& path, int error) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (error != ENOENT || access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return error;
  return errno;
}

}  // namespace

Database::Database(const std::string& path, Mode mode) : path_(path) {
  const int flags = mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(path.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr) == SQLITE_OK) {
    sqlite3_busy_timeout(handle_, 5000);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW})
      sqlite3_db_config(handle_, off, 0, nullptr);
    if (mode == Mode::read) limit_work();
    return;
  }
  int system_error = handle_ ? sqlite3_system_errno(handle_) : 0;
  if (mode == Mode::write) system_error = creation_error(path, system_error);
  const std::string why = system_error != 0 ? std::strerror(system_error) : sqlite3_errstr(SQLITE_CANTOPEN);
  sqlite3_close(handle_);
  throw DatabaseError(path_ + ": " + why);
}

void Database::limit_work() {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path_, none);
  work_max_ = steps_max(none ? 0 : bytes) / steps_between_calls;
  const auto goes_on = [](void* self) {
    auto& database = *static_cast<Database*>(self);
    return database.work_ != nullptr && ++*database.work_ > database.work_max_ ? 1 : 0;
  };
  sqlite3_progress_handler(handle_, steps_between_calls, goes_on, this);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::execute(const std::string& statements) {
  if (!execute_unless_busy(statements)) fail();
}

bool Database::execute_unless_busy(const std::string& statements) {
  errno = 0;
  count_work(nullptr);
  const int result = sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr);
  if (result == SQLITE_BUSY || result == SQLITE_LOCKED) return false;
  if (result != SQLITE_OK) fail(errno);
  return true;
}

std::int64_t Database::number(const std::string& query) { return Statement(*this, query).run().value_or(0); }

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(handle_); }

/// SQLite's "disk I/O error" has no reason, and sqlite3_system_errno has it only for some errors.
void Database::fail(int system_error) const {
  const int code = sqlite3_errcode(handle_);
  if (code == SQLITE_INTERRUPT) throw DatabaseError(path_ + ": takes longer to read than a recording of its size");
  const bool in_writing = code == SQLITE_IOERR || code == SQLITE_FULL;
  const bool has_reason =
      system_error == EFBIG || system_error == ENOSPC || system_error == EDQUOT || system_error == EIO;
  throw DatabaseError(path_ + ": " +
                      (in_writing && has_reason ? std::strerror(system_error) : sqlite3_errmsg(handle_)));
}

Statement::Statement(Database& database, const std::string& text) : database_(database) {
  const int length = static_cast<int>(text.size());
  const int result =
      sqlite3_prepare_v3(database.handle(), text.c_str(), length, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (result != SQLITE_OK) database.fail();
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
  database_.count_work(nullptr);
}

Statement& Statement::bind(std::int64_t number) {
  assert(bound_ < sqlite3_bind_parameter_count(statement_));
  if (sqlite3_bind_int64(statement_, ++bound_, number) != SQLITE_OK) database_.fail();
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  assert(bound_ < sqlite3_bind_parameter_count(statement_));
  const auto copy = SQLITE_TRANSIENT;  // NOLINT: SQLite's own cast
  if (sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), copy) != SQLITE_OK)
    database_.fail();
  return *this;
}

Statement& Statement::bind_null() {
  if (sqlite3_bind_null(statement_, ++bound_) != SQLITE_OK) database_.fail();
  return *this;
}

bool Statement::step() {
  bound_ = 0;
  errno = 0;
  if (sqlite3_stmt_busy(statement_) == 0) work_ = 0;
  database_.count_work(&work_);
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  const int system_error = errno;
  sqlite3_reset(statement_);
  if (result != SQLITE_DONE) database_.fail(system_error);
  return false;
}

std::optional<std::int64_t> Statement::run() {
  std::optional<std::int64_t> number;
  while (step()) number = number_or_null(0);
  return number;
}

int Statement::columns() const { return sqlite3_column_count(statement_); }

std::string Statement::column_name(int column) const { return sqlite3_column_name(statement_, column); }

bool Statement::is_number(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_INTEGER; }

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::int64_t Statement::number(int column) const {
  assert(column >= 0 && column < columns());
  return sqlite3_column_int64(statement_, column);
}

std::int64_t Statement::time_ns(int column) const {
  constexpr std::int64_t most = (std::int64_t{1} << 62) - 1;
  const std::int64_t time = number(column);
  if (time >= -most && time <= most) return time;
  throw DatabaseError(database_.path() + ": " + column_name(column) + " is " + std::to_string(time) +
                      " somewhere, which is no time of a recording");
}

std::uint64_t Statement::amount(int column) const {
  constexpr std::int64_t most = std::int64_t{1} << 52;  // the addresses of physical memory
  const std::int64_t amount = number(column);
  if (amount >= 0 && amount <= most) return static_cast<std::uint64_t>(amount);
  throw DatabaseError(database_.path() + ": " + column_name(column) + " is " + std::to_string(amount) +
                      " somewhere, which no machine has");
}

std::string Statement::text(int column) const {
  const auto* const text = sqlite3_column_text(statement_, column);
  return text ? std::string(reinterpret_cast<const char*>(text),
                            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string();
}

}  // namespace cmt::database
