#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "cmt/error.h"
#include "lifetimes/json_value.h"
#include "lifetimes/report.h"

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

/// The index of the class that begins with a number.
template <class Classes>
std::size_t class_of(const JsonValue& low) {
  const std::size_t index = Classes::index(low.number());
  if (Classes::low(index) != low.number()) throw std::invalid_argument("a class that begins with a wrong number");
  return index;
}

const JsonValue::Array& tuple(const JsonValue& value, std::size_t size) {
  if (value.array().size() != size) throw std::invalid_argument("expected " + std::to_string(size) + " numbers");
  return value.array();
}

Input read_input(const JsonValue& value) {
  Input input;
  input.name = value.at("name").string();
  input.events = value.at("events").number();
  input.defects = value.at("defects").number();
  input.truncated = value.at("truncated").truth();
  input.peak.live = {value.at("peak_live_blocks").number(), value.at("peak_live_bytes").number()};
  input.peak.event = value.at("peak_event").number();
  if (!value.at("peak_time_ns").is_null()) input.peak.time_ns = value.at("peak_time_ns").number();
  for (const JsonValue& size : value.at("peak_sizes").array()) {
    const JsonValue::Array& numbers = tuple(size, 3);
    input.peak.sizes[class_of<SizeClasses>(numbers[0])] = {numbers[1].number(), numbers[2].number()};
  }
  return input;
}

void read_size(Summary& summary, const JsonValue& value) {
  const std::size_t index = class_of<SizeClasses>(value.at("size_bytes_min"));
  SizeSummary& size = summary.sizes[index];
  size.allocated = {value.at("allocated_blocks").number(), value.at("allocated_bytes").number()};
  size.leaked = {value.at("leaked_blocks").number(), value.at("leaked_bytes").number()};
  size.ended = value.at("ended_blocks").number();
  size.short_lived = value.at("short_lived_blocks").number();
  size.temporary = value.at("temporary_blocks").number();
  size.other_thread = value.at("other_thread_blocks").number();
  size.lifetime_max = value.at("lifetime_max").number();
  for (const JsonValue& lifetime : value.at("lifetimes").array()) {
    const JsonValue::Array& numbers = tuple(lifetime, 2);
    summary.count_of(index, class_of<AgeClasses>(numbers[0])) = numbers[1].number();
  }
}

void read_kinds(Summary& summary, const JsonValue& value) {
  for (const auto& [kind, count] : value.object()) {
    std::size_t index = 0;
    while (index < summary.by_kind.size() && name(static_cast<Kind>(index)) != kind) ++index;
    if (index == summary.by_kind.size()) throw std::invalid_argument("an unknown kind of event: " + kind);
    summary.by_kind[index] = count.number();
  }
}

Summary read(const JsonValue& value) {
  if (value.at("schema").string() != "cmt.lifetimes/1") throw std::invalid_argument("not of schema cmt.lifetimes/1");
  const std::string& unit = value.at("clock_unit").string();
  const auto clock = heap::Clock::parse(unit == "ns" ? "time" : unit);
  if (!clock) throw std::invalid_argument("an unknown unit: " + unit);
  Summary summary(*clock);
  for (const JsonValue& input : value.at("inputs").array()) summary.inputs.push_back(read_input(input));
  read_kinds(summary, value.at("kinds"));
  summary.failed = value.at("failed").number();
  summary.unknown_ends = value.at("unknown_ends").number();
  summary.chain_max = value.at("chain_max").number();
  for (const JsonValue& chain : value.at("chains").array()) {
    const JsonValue::Array& numbers = tuple(chain, 2);
    summary.chains[class_of<AgeClasses>(numbers[0])] = numbers[1].number();
  }
  for (const JsonValue& size : value.at("sizes").array()) read_size(summary, size);
  return summary;
}

}  // namespace

Summary read_json(const std::string& path) {
  const std::string text = read_all(path);
  const JsonValue value = JsonValue::parse(text, path);
  try {
    return read(value);
  } catch (const std::invalid_argument& error) {
    throw FormatError(path, std::string("not a summary: ") + error.what());
  }
}

}  // namespace cmt::lifetimes
