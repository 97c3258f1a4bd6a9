#include "preload/collector/settings.h"

#include <cstdlib>
#include <limits>
#include <string_view>

#include "preload/text.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

const char* value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The program has complained about what cannot be read, and then records nothing.
std::uint64_t quantity(const char* name, const Unit* units, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  return read_quantity(value_of(name), units, &value) ? value : otherwise;
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings{};
  settings.times = value_of("CMTTRACE_TIME") == std::string_view("1");
  settings.sample_ns = quantity("CMTTRACE_SAMPLE", units_of_time, 0);
  settings.bytes_max = quantity("CMTTRACE_MAX_BYTES", units_of_size, no_limit);
  settings.events_max = quantity("CMTTRACE_MAX_EVENTS", units_of_count, no_limit);
  settings.time_ns_max = quantity("CMTTRACE_MAX_TIME", units_of_time, no_limit);
  const std::uint64_t spill = quantity("CMTTRACE_SPILL", units_of_size, no_limit);
  if (spill != no_limit) settings.spill_bytes_max = spill;
  return settings;
}

}  // namespace cmt::collector
