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
///       field("usable_bytes", mark.usable_bytes, "of all live blocks, if the allocator reports them");
///       field("slop_bytes", slop_bytes(mark), "usable bytes beyond those asked for");  // computed: written, not read
///     }
///
/// A key ends with its unit (_bytes, _ns, _pages, …) or counts things. The visitors below make JSON and CSV from
/// descriptions. tests/house/field_list.h lists all fields; format-spec/reports has a schema of every report. A visitor
/// that reads gets an object that is not const and assigns its members. A struct that is only written is
/// described by a function of `const Mark&`.
///
/// A member whose JSON is not what its type suggests is wrapped, as time_ns above: see the functions that return a
/// Nullable, Omittable, Tuples, InUse, ByClass or ByName.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "toolkit/output/json.h"

namespace cmt::output {

/// A T that is described, const or not.
template <class M, class T>
concept DescribedAs = std::same_as<std::remove_const_t<M>, T>;

/// A number whose largest value (cmt::unknown) means "not known". It is null in JSON.
template <class Number>
struct Nullable {
  Number& number;
  using Value = std::remove_const_t<Number>;

  std::optional<Value> value() const {
    return number == static_cast<Value>(-1) ? std::nullopt : std::optional<Value>(number);
  }
  void set(const std::optional<Value>& value) { number = value ? *value : static_cast<Value>(-1); }
};

/// An optional whose key is left out if it is empty, rather than null.
template <class Optional>
struct Omittable {
  Optional& optional;
};

/// A member whose key was another one in 0.1.0. JSON has both keys until 0.3, and a reader takes either. CSV keeps the
/// old title until then.
template <class Value>
struct Renamed {
  Value& value;
  std::string old_key;
};

/// A vector of described structs that are written as arrays of their values: [[1, 8], [2, 16]].
template <class List>
struct Tuples {
  List& list;
};

/// A vector of described structs, of which only those that return true from in_use() are written.
template <class List>
struct InUse {
  List& list;
};

/// A number, or a described struct, for each class of a histogram (libcmt/heap/log_linear.h). Written as tuples, each
/// with the least number of its class first; classes that equal T{} are left out.
template <class Classes, class Values>
struct ByClass {
  Values& values;

  /// Calls visit(least number of the class, value).
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < Classes::count; ++i) {
      if (!(values[i] == std::remove_cvref_t<decltype(values[i])>{})) visit(Classes::low(i), values[i]);
    }
  }
};

/// Numbers by name, as an object whose keys vary; zeros are left out. `name` returns the key for an index.
template <class Values, class Name>
struct ByName {
  Values& values;
  Name name;

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0) visit(name(i), values[i]);
    }
  }
};

template <class Number>
Nullable<Number> nullable(Number& number) {
  return {number};
}
template <class Optional>
Omittable<Optional> omit_if_empty(Optional& optional) {
  return {optional};
}
template <class Value>
Renamed<Value> renamed(Value& value, std::string old_key) {
  return {value, std::move(old_key)};
}
template <class List>
Tuples<List> as_tuples(List& list) {
  return {list};
}
template <class List>
InUse<List> in_use_only(List& list) {
  return {list};
}
template <class Classes, class Values>
ByClass<Classes, Values> by_class(Values& values) {
  return {values};
}
template <class Values, class Name>
ByName<Values, Name> by_name(Values& values, Name name) {
  return {values, name};
}

namespace detail {

struct AnyVisitor {
  template <class T>
  void operator()(std::string_view, T&&, std::string_view) {}
};

/// Whether T is Wrapper<...>, and its only or first argument.
template <class T, template <class...> class Wrapper>
struct IsA : std::false_type {};
template <template <class...> class Wrapper, class First, class... Rest>
struct IsA<Wrapper<First, Rest...>, Wrapper> : std::true_type {
  using Argument = std::remove_const_t<First>;
};
template <class T, template <class...> class Wrapper>
inline constexpr bool is_a = IsA<std::remove_const_t<T>, Wrapper>::value;

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
    using namespace detail;
    if constexpr (is_a<T, Renamed>) {
      (*this)(key, value.value, {});
      (*this)(value.old_key, value.value, {});
    } else if constexpr (is_a<T, Nullable>) {
      json_.field(key, value.value());
    } else if constexpr (is_a<T, Omittable>) {
      if (value.optional) (*this)(key, *value.optional, {});
    } else if constexpr (is_a<T, std::optional>) {
      value ? (*this)(key, *value, {}) : json_.field(key, std::nullopt);
    } else if constexpr (is_a<T, ByName>) {
      json_.begin_object(key);
      value.for_each([this](std::string_view name, const auto& number) { json_.field(name, number); });
      json_.end_object();
    } else if constexpr (Described<const T>) {
      json_.begin_object(key);
      describe(*this, value);
      json_.end_object();
    } else if constexpr (is_a<T, std::vector> || is_a<T, Tuples> || is_a<T, InUse> || is_a<T, ByClass>) {
      json_.begin_array(key);
      elements(value);
      json_.end_array();
    } else {
      json_.field(key, value);
    }
  }

  /// One value of the array that is open.
  template <class T>
  void element(const T& value) {
    (*this)({}, value, {});
  }

 private:
  /// The visitor for a tuple: values without their keys.
  struct Values {
    JsonWriter& json;
    template <class T>
    void operator()(std::string_view, const T& value, std::string_view) {
      json.value(value);
    }
  };

  template <class T>
  void elements(const T& list) {
    using namespace detail;
    if constexpr (is_a<T, Tuples>) {
      for (const auto& each : list.list) tuple(each);
    } else if constexpr (is_a<T, InUse>) {
      for (const auto& each : list.list) {
        if (each.in_use()) element(each);
      }
    } else if constexpr (is_a<T, ByClass>) {
      list.for_each([this](auto low, const auto& value) { this->tuple(low, value); });
    } else {
      for (const auto& each : list) element(each);
    }
  }

  template <class... T>
  void tuple(const T&... parts) {
    json_.begin_array();
    (append(parts), ...);
    json_.end_array();
  }
  template <class T>
  void append(const T& value) {
    Values values{json_};
    if constexpr (Described<const T>)
      describe(values, value);
    else
      json_.value(value);
  }

  JsonWriter& json_;
};

/// A value as a field of the object that is open: a described one as an object, a vector as an array.
template <class T>
void write_field(JsonWriter& json, std::string_view key, const T& value) {
  JsonFields{json}(key, value, {});
}
/// The fields of a value as further fields of the object that is open.
template <Described T>
void write_fields(JsonWriter& json, const T& value) {
  JsonFields fields(json);
  describe(fields, value);
}

/// A report: one object, as a text of its own.
template <Described T>
std::string json_text(const T& report) {
  JsonWriter json;
  JsonFields{json}.element(report);
  return json.take();
}

/// A text as a cell of CSV (RFC 4180): in quotes where a comma, a quote or a line's end would break the row up.
std::string csv_cell(std::string_view text);
std::string csv_quoted(std::string_view text);  ///< the same in quotes always
std::string csv_cell(double number);            ///< as short as it can be read back; empty for what is no number

namespace detail {

struct CsvTitles {
  std::string text;
  std::string prefix = {};  // of the fields of a struct in the row
  template <class T>
  void operator()(std::string_view key, const T& value, std::string_view) {
    if constexpr (is_a<T, Renamed>) return (*this)(value.old_key, value.value, {});
    static_assert(!is_a<T, std::vector>, "a row of CSV has no room for a list");
    if constexpr (is_a<T, Omittable>) {
      if (value.optional) (*this)(key, *value.optional, {});
    } else if constexpr (Described<const T>) {
      const std::string outer = std::exchange(prefix, prefix + std::string(key) + "_");
      describe(*this, value);
      prefix = outer;
    } else {
      text += (text.empty() ? "" : ",") + prefix + std::string(key);
    }
  }
};

struct CsvCells {
  std::string text;
  bool first = true;

  template <class T>
  void operator()(std::string_view, const T& value, std::string_view) {
    if constexpr (is_a<T, Omittable>) {
      if (value.optional) (*this)({}, *value.optional, {});
    } else if constexpr (Described<const T>) {
      describe(*this, value);
    } else {
      if (!first) text += ',';
      first = false;
      append(value);
    }
  }
  template <class T>
  void append(const T& value) {
    if constexpr (is_a<T, Renamed>) {
      append(value.value);
    } else if constexpr (is_a<T, Nullable>) {
      append(value.value());
    } else if constexpr (is_a<T, std::optional>) {
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

}  // namespace detail

/// The titles of a table in CSV: "event,time_ns,usable_bytes\n". Only for structs without vectors; the titles may
/// depend on the value.
template <class T>
std::string csv_titles(const T& value = {}) {
  detail::CsvTitles titles;
  describe(titles, value);
  return titles.text + "\n";
}

/// One row of that table. A value that is not known is an empty cell.
template <Described T>
std::string csv_row(const T& value) {
  detail::CsvCells cells;
  describe(cells, value);
  return cells.text + "\n";
}

}  // namespace cmt::output
