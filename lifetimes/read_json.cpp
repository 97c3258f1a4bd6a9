// Reads a summary back from its JSON, for --merge. No other file of this tool includes nlohmann/json, which costs
// seconds to compile.

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cmt/error.h"
#include "libcmt/trace/files.h"
#include "lifetimes/summary.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/fields.h"

namespace cmt::lifetimes {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw std::invalid_argument(std::string("no \"") + key + '"');
  return *found;
}

/// A number that is whole and not negative; get() would round others.
std::uint64_t number(const Json& value) {
  if (!value.is_number_unsigned()) throw std::invalid_argument("expected a number");
  return value.get<std::uint64_t>();
}

/// The index of the class that begins with a number.
template <class Classes>
std::size_t class_index(std::uint64_t low) {
  const std::size_t index = Classes::index(low);
  if (Classes::low(index) != low) throw std::invalid_argument("a class that begins with a wrong number");
  return index;
}

/// Assigns each field of a description that is an lvalue or a wrapper of one. Computed fields follow from these; they
/// need not be in the JSON.
class JsonReader {
 public:
  explicit JsonReader(const Json& object) : object_(object) {}

  template <class T>
  void operator()(std::string_view key, T&& value, std::string_view /*doc*/) {
    constexpr bool assignable = std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;
    if constexpr (output::detail::is_a<T, output::Nullable>) {  // left out is null: summaries of before lack some
      if (!object_.contains(std::string(key))) return;
    }
    if constexpr (assignable || is_wrapper<T>) read(member(object_, std::string(key).c_str()), value);
  }

 private:
  template <class T>
  static constexpr bool is_wrapper =
      output::detail::is_a<T, output::Nullable> || output::detail::is_a<T, output::ByClass> ||
      output::detail::is_a<T, output::ByName> || output::detail::is_a<T, output::InUse>;

  static void read(const Json& json, std::uint64_t& value) { value = number(json); }
  static void read(const Json& json, bool& value) { value = json.get<bool>(); }
  static void read(const Json& json, std::string& value) { value = json.get<std::string>(); }
  static void read(const Json& json, output::Nullable<std::uint64_t>& value) {
    if (!json.is_null()) value.set(number(json));
  }
  template <class T>
  static void read(const Json& json, std::vector<T>& list) {
    for (const Json& each : json) read_object(each, list.emplace_back());
  }
  static void read(const Json& json, output::InUse<std::vector<SizeSummary>>& sizes) {
    for (const Json& each : json) {
      SizeSummary size;
      read_object(each, size);
      sizes.list[class_index<SizeClasses>(size.size_bytes_min)] = size;
    }
  }
  template <class Classes, class Values>
  static void read(const Json& json, output::ByClass<Classes, Values>& classes) {
    for (const Json& tuple : json) {
      TupleReader rest{tuple};
      std::uint64_t low = 0;
      rest({}, low, {});
      auto& value = classes.values[class_index<Classes>(low)];
      if constexpr (output::Described<std::remove_reference_t<decltype(value)>>)
        describe(rest, value);
      else
        rest({}, value, {});
      if (rest.next != tuple.size()) throw std::invalid_argument("expected " + std::to_string(rest.next) + " numbers");
    }
  }
  template <class Values, class Name>
  static void read(const Json& json, output::ByName<Values, Name>& names) {
    for (const auto& [key, count] : json.items()) {
      std::size_t index = 0;
      while (index < names.values.size() && names.name(index) != key) ++index;
      if (index == names.values.size()) throw std::invalid_argument("an unknown kind of event: " + key);
      names.values[index] = number(count);
    }
  }
  template <class T>
  static void read_object(const Json& json, T& value) {
    JsonReader reader(json);
    describe(reader, value);
  }

  struct TupleReader {
    const Json& tuple;
    std::size_t next = 0;

    void operator()(std::string_view, std::uint64_t& value, std::string_view) { value = number(tuple.at(next++)); }
  };

  const Json& object_;
};

Summary read_summary(const Json& json) {
  if (member(json, "schema").get<std::string>() != schema) {
    throw std::invalid_argument("not of schema " + std::string(schema));
  }
  const std::string unit = member(json, "clock_unit").get<std::string>();
  const auto clock = heap::Clock::parse(unit == "ns" ? "time" : unit);
  if (!clock) throw std::invalid_argument("an unknown unit: " + unit);
  Summary summary(*clock);
  JsonReader reader(json);
  describe(reader, summary);
  return summary;
}

}  // namespace

Summary read_json(const std::string& path) {
  const auto input = command::open_decompressed(path);
  const std::string_view text = input->peek(std::numeric_limits<std::size_t>::max());
  try {
    return read_summary(Json::parse(text));
  } catch (const Json::parse_error& error) {
    throw FormatError(input->place(error.byte == 0 ? 0 : error.byte - 1), "no JSON");
  } catch (const Json::exception& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  } catch (const std::invalid_argument& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  }
}

}  // namespace cmt::lifetimes
