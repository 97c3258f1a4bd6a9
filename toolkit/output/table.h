/// Tables for people, which fit the width of a terminal.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "toolkit/output/fields.h"

namespace cmt::output {

/// Which part of a long text is kept: of a path its end and some of its beginning, of a command its beginning.
enum class Telling { both_ends, begin };

/// A text of at most `width` columns, with "..." in the place of what is left out.
std::string shortened(std::string_view text, std::size_t width, Telling telling = Telling::both_ends);

/// A table for people: columns aligned, two blanks between them, no frame.
///
///     Table table({"allocator", "time", "peak resident"});
///     table.add({"libc", "12.1 ms", "3.05 MiB"});
///     std::string text = table.text();
class Table {
 public:
  /// Columns of texts are aligned to the left: those with the indexes `texts`. All others are aligned to the right.
  explicit Table(std::vector<std::string> titles, std::set<std::size_t> texts = {0})
      : titles_(std::move(titles)), texts_(std::move(texts)) {}

  /// Adds a row, with a cell for each column (asserted). Cells are UTF-8; a code point counts as one column wide.
  void add(std::vector<std::string> cells);

  /// Leaves out columns of numbers that are zero in all rows.
  void leave_out_zeros() { leaves_out_zeros_ = true; }

  /// The columns that text() leaves out before others where the width does not suffice, in this order.
  void leave_out_first(std::vector<std::string> titles) { first_out_ = std::move(titles); }

  /// The titles and all rows. No line ends with blanks. With a `width`, the widest column of texts is shortened to fit.
  /// If less than `least_width` would be left of it, columns are left out: first those of leave_out_first(), then
  /// others from the right. The first two and the shortened one remain.
  std::string text(std::size_t width = 0, Telling telling = Telling::both_ends) const;

  static constexpr std::size_t least_width = 24;

  const std::vector<std::string>& titles() const { return titles_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<std::size_t> widths() const;
  bool is_zero(std::size_t column) const;
  void append_row(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                  Telling telling) const;
  void fit_to(std::vector<std::size_t>& widths, std::size_t width) const;

  std::vector<std::string> titles_;
  std::set<std::size_t> texts_;
  std::vector<std::vector<std::string>> rows_;
  bool leaves_out_zeros_ = false;
  std::vector<std::string> first_out_;
};

/// How a cell for people shows the value of a field: a function from the value's type (64 bits wide) to text, such as
/// with_commas() or bytes_text().
class Form {
 public:
  template <class Value>
  Form(std::string (*form)(Value)) : form_(std::function<std::string(Value)>(form)) {}  // NOLINT: as a function
  template <class Value>
  Form(std::function<std::string(Value)> form) : form_(std::move(form)) {}  // NOLINT: as a function

  /// The text of a value; empty if the value is not known. The value has the type that the function takes (asserted).
  template <class T>
  std::optional<std::string> operator()(const T& value) const {
    if constexpr (detail::is_a<T, Nullable>) {
      return (*this)(value.value());
    } else if constexpr (detail::is_a<T, std::optional>) {
      return value ? (*this)(*value) : std::nullopt;
    } else if constexpr (std::integral<T>) {
      return text_of<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value);
    } else if constexpr (std::floating_point<T>) {
      return text_of<double>(value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      return text_of<std::string_view>(value);
    } else {
      assert(!"a list or an object is no cell");
      return {};
    }
  }

 private:
  template <class Value>
  std::optional<std::string> text_of(Value value) const {
    const auto* const form = std::get_if<std::function<std::string(Value)>>(&form_);
    assert(form != nullptr);
    return form == nullptr ? std::nullopt : std::optional((*form)(value));
  }

  std::variant<std::function<std::string(std::uint64_t)>, std::function<std::string(std::int64_t)>,
               std::function<std::string(double)>, std::function<std::string(std::string_view)>>
      form_;
};

/// The columns of a table for people. The rows are structs that describe() describes (fields.h). So each figure is
/// listed once: CSV has all fields of describe(), this table has some of them, in an order and a form for people.
///
///     Columns<Sample> columns;
///     columns.add("live", "live_bytes", bytes_text);
///     columns.add("events", "events", with_commas);
///
///     columns.add_computed("use", [](const Sample& each) { return percent_text(each.live_bytes, each.page_bytes); });
///
///     std::string text = columns.table(samples).text();
///     std::string csv = csv_titles<Sample>();
///     for (const Sample& sample : samples) csv += csv_row(sample);
///
/// Cost: each row visits its description once.
template <Described Row>
class Columns {
 public:
  using Cell = std::function<std::string(const Row&)>;

  /// A column to the right, with the field that describe() calls `key` (asserted). `none` is the cell of a value that
  /// is not known.
  void add(std::string title, std::string key, Form form, std::string none = "-") {
    columns_.push_back({std::move(title), std::move(key), std::move(form), std::move(none), {}});
  }
  /// A column to the right, which only people read.
  void add_computed(std::string title, Cell cell) {
    columns_.push_back({std::move(title), {}, {}, {}, std::move(cell)});
  }
  /// The same to the left.
  void add_text(std::string title, Cell cell) {
    texts_.insert(columns_.size());
    add_computed(std::move(title), std::move(cell));
  }

  /// As Table::leave_out_first().
  void leave_out_first(std::vector<std::string> titles) { first_out_ = std::move(titles); }
  /// As Table::leave_out_zeros().
  void leave_out_zeros() { leaves_out_zeros_ = true; }

  /// The cells of one row, for Table::add().
  std::vector<std::string> cells(const Row& row) const {
    FieldCells fields{*this, std::vector<std::optional<std::string>>(columns_.size())};
    describe(fields, row);
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      assert(columns_[i].key.empty() || fields.cells[i]);  // else no field has this key
      cells.push_back(columns_[i].cell ? columns_[i].cell(row) : fields.cells[i].value_or(std::string()));
    }
    return cells;
  }

  /// A table without rows, or with `rows`.
  Table table() const {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    Table table(std::move(titles), texts_);
    table.leave_out_first(first_out_);
    if (leaves_out_zeros_) table.leave_out_zeros();
    return table;
  }
  template <class Rows>
  Table table(const Rows& rows) const {
    Table whole = table();
    for (const Row& row : rows) whole.add(cells(row));
    return whole;
  }

 private:
  struct Column {
    std::string title;
    std::string key;  ///< of a field; empty if the cell is computed
    std::optional<Form> form;
    std::string none;
    Cell cell;
  };

  /// The visitor that makes the cells of fields.
  struct FieldCells {
    const Columns& columns;
    std::vector<std::optional<std::string>> cells;

    template <class T>
    void operator()(std::string_view key, const T& value, std::string_view /*doc*/) {
      if constexpr (detail::is_a<T, Renamed>) return (*this)(key, value.value, {});
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const Column& column = columns.columns_[i];
        if (column.key == key) cells[i] = (*column.form)(value).value_or(column.none);
      }
    }
  };

  std::vector<Column> columns_;
  std::set<std::size_t> texts_;
  std::vector<std::string> first_out_;
  bool leaves_out_zeros_ = false;
};

}  // namespace cmt::output
