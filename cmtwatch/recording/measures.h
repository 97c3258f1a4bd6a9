#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cmt::watch {

/// What a recording holds beside what statm and stat say.
struct Measures {
  bool mappings = true;   ///< smaps: what a process's memory is made of
  bool stacks = true;     ///< which of the mappings are stacks of threads, by their stack pointers; only with them
  bool totals = false;    ///< smaps_rollup: the sums of all mappings; mappings bring them along
  bool io = true;         ///< a process's disk traffic
  bool oom = true;        ///< the scores by which the kernel chooses whom to end when memory is short
  bool system = true;     ///< the machine's memory
  bool disks = true;      ///< the machine's disks
  bool counters = false;  ///< the processor's counters
};

/// What they are called, for messages.
constexpr char measure_names[] = "mappings, stacks, totals, io, oom, system, disks, counters, statm or all";

/// Of names with commas between: those alone; "statm", which is always measured, stands for no more than that, and
/// "stacks" brings the mappings along. Nothing where a name is unknown.
std::optional<Measures> parse_measures(std::string_view names);

/// Such names, for the recording.
std::string names_of(const Measures& measures);

/// Of whom there are no counters of the processor though they were wanted.
struct CountersMissing {
  std::string reason{};       ///< of the last one
  std::size_t processes = 0;  ///< that have none
  std::size_t asked = 0;      ///< of so many

  /// "Operation not permitted" where nobody has any, else "1 of 57 processes: Operation not permitted".
  std::string text() const;
};

}  // namespace cmt::watch
