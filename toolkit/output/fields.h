/// How the figures of a report are described: once for each struct, by a function that names its members.
///
///     struct Mark {
///       std::uint64_t event = 0;
///       std::uint64_t time_ns = unknown;
///       std::optional<std::uint64_t> usable_bytes;
///     };
///
///     template <class Visitor, DescribedAs<Mark> M>
///     void describe(Visitor& field, M& mark) {
///       field("event", mark.event, "the last event before the mark, counted from 1");
///       field("time_ns", nullable(mark.time_ns), "since the recording began");
///       field("usable_bytes", mark.usable_bytes, "of all live blocks, where the allocator tells");
///       field("slop_bytes", slop_bytes(mark), "usable bytes beyond those asked for");  // computed: written, not read
///     }
///
/// A key ends with its unit (_bytes, _ns, _pages, …) or counts things. Visitors below make JSON, CSV and the list of
/// all fields of that; a reader is a visitor that is handed an object that is not const, and assigns. doc/reports.md is
/// that list of every report.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "toolkit/output/json.h"

namespace cmt::output {

/// A T that is described, const or not.
template <class M, class T>
concept DescribedAs = std::same_as<std::remove_const_t<M>, T>;

/// A number of which the largest one (cmt::unknown) stands for "not known".
template <class Number>
struct Nullable {
  Number& number;
  using Value = std::remove_const_t<Number>;

  std::optional<Value> value() const {
    return number == static_cast<Value>(-1) ? std::nullopt : std::optional<Value>(number);
  }
  void set(const std::optional<Value>& value) { number = value ? *value : static_cast<Value>(-1); }
};

template <class Number>
Nullable<Number> nullable(Number& number) {
  return {number};
}

namespace detail {

struct AnyVisitor {
  template <class T>
  void operator()(std::string_view, T&&, std::string_view) {}
};

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};

template <class T>
struct IsNullable : std::false_type {};
template <class T>
struct IsNullable<Nullable<T>> : std::true_type {};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

/// A struct that has a function describe().
template <class T>
concept Described = requires(detail::AnyVisitor& visitor, T& object) {
  describe(visitor, object);
};

/// Writes each field of an object that the caller has begun: a described struct as an object, a vector as an array.
class JsonFields {
 public:
  explicit JsonFields(JsonWriter& json) : json_(json) {}

  template <class T>
  void operator()(std::string_view key, const T& value, std::string_view /*doc*/) {
    if constexpr (detail::IsNullable<T>::value) {
      json_.field(key, value.value());
    } else if constexpr (detail::IsList<T>::value) {
      json_.begin_array(key);
      for (const auto& each : value) element(each);
      json_.end_array();
    } else if constexpr (detail::IsOptional<T>::value) {
      value ? (*this)(key, *value, {}) : json_.field(key, std::nullopt);
    } else if constexpr (Described<const T>) {
      json_.begin_object(key);
      describe(*this, value);
      json_.end_object();
    } else {
      json_.field(key, value);
    }
  }

  template <class T>
  void element(const T& value) {
    if constexpr (Described<const T>) {
      json_.begin_object();
      describe(*this, value);
      json_.end_object();
    } else {
      json_.value(value);
    }
  }

 private:
  JsonWriter& json_;
};

/// One object of the array that is open.
template <Described T>
void write_object(JsonWriter& json, const T& value) {
  JsonFields{json}.element(value);
}

/// Its fields as one named object, or as further fields of the object that is open.
template <Described T>
void write_object(JsonWriter& json, std::string_view key, const T& value) {
  JsonFields{json}(key, value, {});
}
template <Described T>
void write_fields(JsonWriter& json, const T& value) {
  JsonFields fields(json);
  describe(fields, value);
}
template <Described T>
void write_array(JsonWriter& json, std::string_view key, const std::vector<T>& values) {
  JsonFields{json}(key, values, {});
}

/// A text as a cell of CSV (RFC 4180): in quotes where a comma, a quote or a line's end would break the row up.
std::string csv_cell(std::string_view text);
std::string csv_cell(double number);  ///< as short as it can be read back; empty for what is no number

/// The titles of a table in CSV, and its rows: "event,time_ns,usable_bytes\n". What is not known is an empty cell.
/// Only for structs without vectors.
template <class T>
std::string csv_titles();
template <Described T>
std::string csv_row(const T& value);

/// One field as doc/reports.md lists it.
struct FieldDoc {
  std::string key;   ///< with those that it is within: "marks[].event"
  std::string type;  ///< "number", "text", "true or false", "object", "array"
  std::string doc;
  bool may_be_null;
};

namespace detail {

struct CsvTitles {
  std::string text;
  template <class T>
  void operator()(std::string_view key, const T&, std::string_view) {
    static_assert(!IsList<T>::value, "a row of CSV has no room for a list");
    text += (text.empty() ? "" : ",") + std::string(key);
  }
};

struct CsvCells {
  std::string text;
  bool first = true;

  template <class T>
  void operator()(std::string_view, const T& value, std::string_view) {
    if (!first) text += ',';
    first = false;
    append(value);
  }
  template <class T>
  void append(const T& value) {
    if constexpr (IsNullable<T>::value) {
      append(value.value());
    } else if constexpr (IsOptional<T>::value) {
      if (value) append(*value);
    } else if constexpr (std::same_as<T, bool>) {
      text += value ? "true" : "false";
    } else if constexpr (std::integral<T>) {
      text += std::to_string(value);
    } else {
      text += csv_cell(value);
    }
  }
};

template <class T>
constexpr std::string_view type_name() {
  if constexpr (IsNullable<T>::value) return "number";
  if constexpr (std::same_as<T, bool>) return "true or false";
  if constexpr (std::is_arithmetic_v<T>) return "number";
  if constexpr (IsList<T>::value) return "array";
  if constexpr (Described<T>) return "object";
  return "text";
}

class FieldLister {
 public:
  FieldLister(std::vector<FieldDoc>& list, std::string prefix) : list_(list), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(std::string_view key, const T&, std::string_view doc) {
    if constexpr (IsOptional<T>::value) {
      add<typename T::value_type>(key, doc, true);
    } else {
      add<T>(key, doc, IsNullable<T>::value);
    }
  }

 private:
  template <class T>
  void add(std::string_view key, std::string_view doc, bool may_be_null) {
    const std::string name = prefix_ + std::string(key);
    list_.push_back({name, std::string(type_name<T>()), std::string(doc), may_be_null});
    if constexpr (IsList<T>::value) {
      if constexpr (Described<typename T::value_type>) list<typename T::value_type>(name + "[].");
    } else if constexpr (Described<T>) {
      list<T>(name + ".");
    }
  }
  template <class T>
  void list(const std::string& prefix) {
    const T value{};
    FieldLister below(list_, prefix);
    describe(below, value);
  }

  std::vector<FieldDoc>& list_;
  std::string prefix_;
};

}  // namespace detail

template <class T>
std::string csv_titles() {
  const T value{};
  detail::CsvTitles titles;
  describe(titles, value);
  return titles.text + "\n";
}

template <Described T>
std::string csv_row(const T& value) {
  detail::CsvCells cells;
  describe(cells, value);
  return cells.text + "\n";
}

/// All fields of a struct and of those within it, in their order.
template <class T>
std::vector<FieldDoc> list_fields(const std::string& prefix = {}) {
  std::vector<FieldDoc> list;
  const T value{};
  detail::FieldLister lister(list, prefix);
  describe(lister, value);
  return list;
}

}  // namespace cmt::output
