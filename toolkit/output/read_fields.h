/// Reads described structs (fields.h) back from their JSON. Only one file of a tool includes this header, because
/// nlohmann/json costs seconds to compile.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "toolkit/output/fields.h"

namespace cmt::output {

using Json = nlohmann::json;

/// The member of an object. Throws std::invalid_argument if it is missing.
inline const Json& member(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  if (found == object.end()) throw std::invalid_argument("no \"" + std::string(key) + '"');
  return *found;
}

/// A number that is whole and not negative; get() would round others.
inline std::uint64_t whole_number(const Json& value) {
  if (!value.is_number_unsigned()) throw std::invalid_argument("expected a number");
  return value.get<std::uint64_t>();
}

/// The index of the class that begins with a number.
template <class Classes>
std::size_t class_index(std::uint64_t low) {
  const std::size_t index = Classes::index(low);
  assert(index < Classes::count);
  if (Classes::low(index) != low) throw std::invalid_argument("a class that begins with a wrong number");
  return index;
}

/// Assigns each field of a description that is an lvalue or a wrapper of one. Computed fields follow from these; they
/// need not be in the JSON. Throws std::invalid_argument, and nlohmann's exceptions.
///
/// An element of an InUse list is put into its place by a function place_in_use(list, element), found beside its type.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

  template <class T>
  void operator()(std::string_view key, T&& value, std::string_view /*doc*/) {
    using namespace detail;
    if constexpr (is_a<std::remove_reference_t<T>, Renamed>) {
      (*this)(object_.contains(value.old_key) ? std::string_view(value.old_key) : key, value.value, {});
    } else {
      constexpr bool assignable = std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;
      if constexpr (is_a<std::remove_reference_t<T>, Nullable> || is_a<std::remove_reference_t<T>, Omittable>) {
        if (!object_.contains(std::string(key))) return;  // left out is null: JSON of older versions lacks some
      }
      if constexpr (assignable || is_wrapper<T>) read(member(object_, key), value);
    }
  }

  template <class T>
  static void read_object(const Json& json, T& value) {
    FieldReader reader(json);
    describe(reader, value);
  }

 private:
  template <class T>
  static constexpr bool is_wrapper = detail::is_a<T, Nullable> || detail::is_a<T, ByClass> || detail::is_a<T, ByName> ||
                                     detail::is_a<T, InUse> || detail::is_a<T, Omittable>;

  static void read(const Json& json, std::uint64_t& value) { value = whole_number(json); }
  static void read(const Json& json, bool& value) { value = json.get<bool>(); }
  static void read(const Json& json, std::string& value) { value = json.get<std::string>(); }
  static void read(const Json& json, double& value) {
    value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  }
  static void read(const Json& json, Nullable<std::uint64_t>& value) {
    if (!json.is_null()) value.set(whole_number(json));
  }
  template <class T>
  static void read(const Json& json, Omittable<std::optional<T>>& value) {
    read(json, value.optional);
  }
  template <class T>
  static void read(const Json& json, std::optional<T>& value) {
    value.reset();
    if (json.is_null()) return;
    T content{};
    read(json, content);
    value = std::move(content);
  }
  template <Described T>
  static void read(const Json& json, T& value) {
    read_object(json, value);
  }
  template <class T>
  static void read(const Json& json, std::vector<T>& list) {
    if (!json.is_array()) throw std::invalid_argument("expected a list");
    for (const Json& each : json) read(each, list.emplace_back());
  }
  template <class T>
  static void read(const Json& json, InUse<std::vector<T>>& list) {
    for (const Json& each : json) {
      T element;
      read_object(each, element);
      place_in_use(list.list, element);
    }
  }
  template <class Classes, class Values>
  static void read(const Json& json, ByClass<Classes, Values>& classes) {
    for (const Json& tuple : json) {
      TupleReader rest{tuple};
      std::uint64_t low = 0;
      rest({}, low, {});
      auto& value = classes.values[class_index<Classes>(low)];
      if constexpr (Described<std::remove_reference_t<decltype(value)>>)
        describe(rest, value);
      else
        rest({}, value, {});
      if (rest.next != tuple.size()) throw std::invalid_argument("expected " + std::to_string(rest.next) + " numbers");
    }
  }
  template <class Values, class Name>
  static void read(const Json& json, ByName<Values, Name>& names) {
    for (const auto& [key, count] : json.items()) {
      std::size_t index = 0;
      while (index < names.values.size() && names.name(index) != key) ++index;
      if (index == names.values.size()) throw std::invalid_argument("an unknown kind of event: " + key);
      names.values[index] = whole_number(count);
    }
  }

  struct TupleReader {
    const Json& tuple;
    std::size_t next = 0;

    void operator()(std::string_view, std::uint64_t& value, std::string_view) {
      value = whole_number(tuple.at(next++));
    }
  };

  const Json& object_;
};

}  // namespace cmt::output
