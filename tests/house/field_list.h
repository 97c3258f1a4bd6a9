/// Lists the fields of described structs (toolkit/output/fields.h), for format-spec/reports.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "toolkit/output/fields.h"

namespace cmt::output {

/// One field as a schema has it.
struct FieldDoc {
  std::string key;   ///< with those that it is within: "marks[].event"
  std::string type;  ///< "number", "text", "true or false", "object", "numbers", "texts", "objects", "tuples"
  std::string doc;
  bool may_be_null = false;
  bool may_be_absent = false;
};

namespace detail {

template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::same_as<T, bool>) return "true or false";
  if constexpr (std::is_arithmetic_v<T> || is_a<T, Nullable>) return "number";
  if constexpr (Described<T> || is_a<T, ByName>) return "object";
  if constexpr (is_a<T, Tuples> || is_a<T, ByClass>) return "tuples";
  if constexpr (is_a<T, InUse>) return "objects";
  if constexpr (is_a<T, std::optional>) return type_name<typename IsA<T, std::optional>::Argument>();
  if constexpr (is_a<T, std::vector>) {
    constexpr std::string_view element = type_name<typename IsA<T, std::vector>::Argument>();
    return element == "object" ? "objects" : element == "number" ? "numbers" : element == "text" ? "texts" : "arrays";
  }
  return "text";
}

/// NaN is written as null, so each number with a fraction may be null.
class FieldLister {
 public:
  FieldLister(std::vector<FieldDoc>& list, std::string prefix) : list_(list), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(std::string_view key, const T& value, std::string_view doc) {
    if constexpr (is_a<T, Renamed>) {
      (*this)(key, value.value, doc);
      (*this)(value.old_key, value.value, "the same, until 0.3: " + std::string(key));
      return;
    } else {
      list(key, value, doc);
    }
  }

 private:
  template <class T>
  void list(std::string_view key, const T&, std::string_view doc) {
    FieldDoc field{prefix_ + std::string(key), {}, std::string(doc)};
    if constexpr (is_a<T, Omittable>) {
      field.may_be_absent = true;
      field.may_be_null =
          std::floating_point<typename IsA<typename IsA<T, Omittable>::Argument, std::optional>::Argument>;
      add<typename IsA<typename IsA<T, Omittable>::Argument, std::optional>::Argument>(std::move(field));
    } else if constexpr (is_a<T, std::optional>) {
      field.may_be_null = true;
      add<typename IsA<T, std::optional>::Argument>(std::move(field));
    } else {
      field.may_be_null = is_a<T, Nullable> || std::floating_point<T>;
      add<T>(std::move(field));
    }
  }

  template <class T>
  void add(FieldDoc field) {
    field.type = type_name<T>();
    const std::string key = field.key;
    list_.push_back(std::move(field));
    if constexpr (is_a<T, InUse>) {
      add_elements<typename IsA<T, InUse>::Argument>(key);
    } else if constexpr (is_a<T, std::vector>) {
      add_elements<T>(key);
    } else if constexpr (Described<T>) {
      add_fields<T>(key + ".");
    }
  }
  /// The last two parts of a key that repeats itself: "callers[].callers" of "a[].callers[].callers".
  static std::string repeated(const std::string& key) {
    const std::string last = key.substr(key.rfind('.') + 1);
    return last + "[]." + last;
  }
  template <class List>
  void add_elements(const std::string& key) {
    using Element = typename IsA<List, std::vector>::Argument;
    const bool is_within_itself = key.ends_with(repeated(key));  // a tree: its fields are listed once
    if constexpr (Described<Element>) {
      if (!is_within_itself) add_fields<Element>(key + "[].");
    }
  }
  template <class T>
  void add_fields(const std::string& prefix) {
    const T value{};
    FieldLister below(list_, prefix);
    describe(below, value);
  }

  std::vector<FieldDoc>& list_;
  std::string prefix_;
};

}  // namespace detail

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
