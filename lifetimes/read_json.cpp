// The one file that includes nlohmann/json, which costs seconds a translation unit.

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "cmt/error.h"
#include "lifetimes/report.h"
#include "toolkit/output/numbers.h"

namespace cmt::lifetimes {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

std::string read_all(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  std::string text;
  char buffer[65536];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) text.append(buffer, count);
  if (std::ferror(file.get()) != 0) throw std::system_error(errno, std::generic_category(), path);
  return text;
}

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
std::size_t class_of(const Json& low) {
  const std::size_t index = Classes::index(number(low));
  if (Classes::low(index) != number(low)) throw std::invalid_argument("a class that begins with a wrong number");
  return index;
}

const Json& tuple(const Json& value, std::size_t size) {
  if (value.size() != size) throw std::invalid_argument("expected " + std::to_string(size) + " numbers");
  return value;
}

Input read_input(const Json& value) {
  Input input;
  input.name = member(value, "name").get<std::string>();
  input.events = number(member(value, "events"));
  input.defects = number(member(value, "defects"));
  input.truncated = member(value, "truncated").get<bool>();
  input.peak.live = {number(member(value, "peak_live_blocks")), number(member(value, "peak_live_bytes"))};
  input.peak.event = number(member(value, "peak_event"));
  if (!member(value, "peak_time_ns").is_null()) input.peak.time_ns = number(member(value, "peak_time_ns"));
  for (const Json& size : member(value, "peak_sizes")) {
    const Json& numbers = tuple(size, 3);
    input.peak.sizes[class_of<SizeClasses>(numbers[0])] = {number(numbers[1]), number(numbers[2])};
  }
  return input;
}

void read_size(Summary& summary, const Json& value) {
  const std::size_t index = class_of<SizeClasses>(member(value, "size_bytes_min"));
  SizeSummary& size = summary.sizes[index];
  size.allocated = {number(member(value, "allocated_blocks")), number(member(value, "allocated_bytes"))};
  size.leaked = {number(member(value, "leaked_blocks")), number(member(value, "leaked_bytes"))};
  size.ended = number(member(value, "ended_blocks"));
  size.short_lived = number(member(value, "short_lived_blocks"));
  size.temporary = number(member(value, "temporary_blocks"));
  size.other_thread = number(member(value, "other_thread_blocks"));
  size.lifetime_max = number(member(value, "lifetime_max"));
  for (const Json& lifetime : member(value, "lifetimes")) {
    const Json& numbers = tuple(lifetime, 2);
    summary.count_of(index, class_of<AgeClasses>(numbers[0])) = number(numbers[1]);
  }
}

void read_kinds(Summary& summary, const Json& value) {
  for (const auto& [kind, count] : value.items()) {
    std::size_t index = 0;
    while (index < summary.by_kind.size() && name(static_cast<Kind>(index)) != kind) ++index;
    if (index == summary.by_kind.size()) throw std::invalid_argument("an unknown kind of event: " + kind);
    summary.by_kind[index] = number(count);
  }
}

Summary read(const Json& value) {
  if (member(value, "schema").get<std::string>() != "cmt.lifetimes/1")
    throw std::invalid_argument("not of schema cmt.lifetimes/1");
  const std::string unit = member(value, "clock_unit").get<std::string>();
  const auto clock = heap::Clock::parse(unit == "ns" ? "time" : unit);
  if (!clock) throw std::invalid_argument("an unknown unit: " + unit);
  Summary summary(*clock);
  for (const Json& input : member(value, "inputs")) summary.inputs.push_back(read_input(input));
  read_kinds(summary, member(value, "kinds"));
  summary.failed = number(member(value, "failed"));
  summary.unknown_ends = number(member(value, "unknown_ends"));
  summary.chain_max = number(member(value, "chain_max"));
  for (const Json& chain : member(value, "chains")) {
    const Json& numbers = tuple(chain, 2);
    summary.chains[class_of<AgeClasses>(numbers[0])] = number(numbers[1]);
  }
  for (const Json& size : member(value, "sizes")) read_size(summary, size);
  return summary;
}

std::string place_of(const Json::parse_error& error) {
  return "offset 0x" + output::hex(error.byte == 0 ? 0 : error.byte - 1);
}

}  // namespace

Summary read_json(const std::string& path) {
  const std::string text = read_all(path);
  try {
    return read(Json::parse(text));
  } catch (const Json::parse_error& error) {
    throw FormatError(path + ": " + place_of(error), "no JSON");
  } catch (const Json::exception& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  } catch (const std::invalid_argument& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  }
}

}  // namespace cmt::lifetimes
