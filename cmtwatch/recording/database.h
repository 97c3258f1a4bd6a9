#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace cmt::watch {

/// What SQLite refuses, with the file and its words.
struct DatabaseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An SQLite file. All of it throws DatabaseError.
class Database {
 public:
  enum class Mode { read, write };

  Database(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Statements without results.
  void execute(const std::string& statements);

  /// The same; false, and nothing is done, where another process has the file.
  bool execute_unless_busy(const std::string& statements);

  /// The one number that a query gives; 0 where it gives none.
  std::int64_t number(const std::string& query);

  std::int64_t last_row() const;
  sqlite3* handle() const { return handle_; }

  /// Throws what SQLite said last; `system_error`: what errno was then, if anything.
  [[noreturn]] void fail(int system_error = 0) const;

 private:
  std::string path_;
  sqlite3* handle_ = nullptr;
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

  /// All of it, for a statement without rows.
  void run();

  int columns() const;
  std::string column_name(int column) const;

  bool is_number(int column) const;
  std::int64_t number(int column) const;
  std::optional<std::int64_t> number_or_null(int column) const;
  std::optional<std::uint64_t> bytes_or_null(int column) const;
  std::string text(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

}  // namespace cmt::watch
