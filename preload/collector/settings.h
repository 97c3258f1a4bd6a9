#pragma once

#include <cstdint>
#include <optional>

namespace cmt::collector {

/// What the environment asks of the collector.
struct Settings {
  bool times = false;
  std::uint64_t sample_ns = 0;  ///< 0: none
  std::uint64_t bytes_max;
  std::uint64_t events_max;
  std::uint64_t time_ns_max;
  std::optional<std::uint64_t> spill_bytes_max;

  static Settings from_environment();
};

}  // namespace cmt::collector
