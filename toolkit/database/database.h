/// SQLite files, for the recordings of cmtwatch: prepared statements, with errors as exceptions.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

struct sqlite3;
struct sqlite3_stmt;

namespace cmt::database {

/// An error of SQLite, with the file and its message.
struct DatabaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An SQLite file, which may come from anyone. So triggers and views are off. When a file is read, a statement fails
/// that does more work than a file of its size warrants. All functions throw DatabaseError.
class Database {
 public:
  enum class Mode { read, write };

  Database(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs statements that have no results.
  void execute(const std::string& statements);

  /// The same. Does nothing and returns false if another process holds the file.
  bool execute_unless_busy(const std::string& statements);

  /// The one number that a query returns, or 0 if it returns none.
  std::int64_t number(const std::string& query);

  std::int64_t last_row() const;
  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

  /// Counts the work of the statement that runs in `work`; null: does not count.
  void count_work(std::uint64_t* work) { work_ = work; }

  /// Throws the last error of SQLite. `system_error` is errno at that time, or 0.
  [[noreturn]] void fail(int system_error = 0) const;

 private:
  void limit_work();

  std::string path_;
  sqlite3* handle_ = nullptr;
  std::uint64_t* work_ = nullptr;  ///< of the statement that runs, in calls of the progress handler
  std::uint64_t work_max_ = 0;
};

/// A prepared statement, bound and run again and again:
///
///     Statement add(database, "insert into name (text) values (?)");
///     add.bind("[heap]").run();
///     Statement names(database, "select id, text from name");
///     while (names.step()) use(names.number(0), names.text(1));
class Statement {
 public:
  Statement(Database& database, const std::string& text);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds the next parameter.
  Statement& bind(std::int64_t number);
  Statement& bind(std::uint64_t number) { return bind(static_cast<std::int64_t>(number)); }
  Statement& bind(int number) { return bind(static_cast<std::int64_t>(number)); }
  Statement& bind(std::string_view text);
  Statement& bind_null();
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }

  /// The next row; false after the last, and then the statement is ready to be bound again.
  bool step();

  /// Steps to the end. Returns the first column of the last row, or nothing if there is no row or the column is null.
  std::optional<std::int64_t> run();

  int columns() const;
  std::string column_name(int column) const;

  bool is_number(int column) const;
  bool is_null(int column) const;
  std::int64_t number(int column) const;
  std::string text(int column) const;

  /// A time in nanoseconds. Throws if it is more than 146 years from 0: the sum or difference of two times must not
  /// overflow.
  std::int64_t time_ns(int column) const;

  /// An amount. Throws if it is below 0 or beyond any memory, so that a thousand amounts can be added up.
  std::uint64_t amount(int column) const;

  /// A column as a number, a text, or an optional of one, which is nothing for null.
  template <class T>
  T value(int column) const {
    if constexpr (std::is_same_v<T, std::string>) {
      return text(column);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      return amount(column);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(number(column));
    } else {
      return is_null(column) ? T() : T(value<typename T::value_type>(column));
    }
  }
  std::optional<std::int64_t> number_or_null(int column) const { return value<std::optional<std::int64_t>>(column); }
  std::optional<std::uint64_t> bytes_or_null(int column) const { return value<std::optional<std::uint64_t>>(column); }

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace cmt::database
