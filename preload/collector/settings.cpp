#include "preload/collector/settings.h"

#include <cstdlib>
#include <limits>
#include <string_view>

namespace cmt::collector {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

std::string_view value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

/// "10ms", "64M", "1000": a number with one of the units, or none. Anything else is `otherwise`.
template <std::size_t n>
std::uint64_t quantity(const char* name, const Unit (&units)[n], std::uint64_t otherwise) {
  const std::string text(value_of(name));
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str()) return otherwise;
  for (const Unit& unit : units) {
    if (unit.name == end && number <= no_limit / unit.factor) return number * unit.factor;
  }
  return otherwise;
}

constexpr Unit durations[] = {{"ns", 1},           {"us", 1000},           {"ms", 1'000'000}, {"s", 1'000'000'000},
                              {"", 1'000'000'000}, {"min", 60'000'000'000}};
constexpr Unit sizes[] = {{"", 1},          {"K", 1 << 10},   {"M", 1 << 20},  {"G", 1 << 30},
                          {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
constexpr Unit counts[] = {{"", 1}};

}  // namespace

Settings Settings::from_environment() {
  Settings settings{};
  settings.times = value_of("CMTTRACE_TIME") == "1";
  settings.sample_ns = quantity("CMTTRACE_SAMPLE", durations, 0);
  settings.bytes_max = quantity("CMTTRACE_MAX_BYTES", sizes, no_limit);
  settings.events_max = quantity("CMTTRACE_MAX_EVENTS", counts, no_limit);
  settings.time_ns_max = quantity("CMTTRACE_MAX_TIME", durations, no_limit);
  settings.spill_bytes_max = quantity("CMTTRACE_SPILL", sizes, std::uint64_t{1} << 30);
  settings.control_path = value_of("CMTTRACE_CONTROL");
  settings.status_path = value_of("CMTTRACE_STATUS");
  return settings;
}

}  // namespace cmt::collector
