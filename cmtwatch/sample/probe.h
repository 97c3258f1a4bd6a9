#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// A figure of a process's memory. All are bytes.
enum class Metric {
  pss,   ///< proportional set: every resident page divided by the number of processes that map it; may be added up
  rss,   ///< resident set
  uss,   ///< unique set: resident pages that no other process maps
  anon,  ///< resident pages of no file
  swap,  ///< swapped out
  vm,    ///< address space
};

constexpr std::array<std::string_view, 6> metric_list{"pss", "rss", "uss", "anon", "swap", "vm"};
constexpr const char* metric_names = "pss, rss, uss, anon, swap or vm";  ///< for messages

constexpr std::string_view name_of(Metric metric) { return metric_list[static_cast<std::size_t>(metric)]; }

inline std::optional<Metric> metric_named(std::string_view name) {
  const auto found = std::find(metric_list.begin(), metric_list.end(), name);
  if (found == metric_list.end()) return std::nullopt;
  return static_cast<Metric>(found - metric_list.begin());
}

/// Whether the kernel walks page tables for it (smaps_rollup): 65 ms per GB of small pages. The others cost 10 us.
constexpr bool walks_page_tables(Metric metric) { return metric == Metric::pss || metric == Metric::uss; }

/// The memory of several processes together: proportional sets where they are recorded, so that shared memory counts
/// once, else resident sets.
class MemorySum {
 public:
  void add(const std::optional<std::uint64_t>& proportional_bytes, const std::optional<std::uint64_t>& resident_bytes) {
    if (!proportional_bytes && !resident_bytes) return;
    bytes_ += proportional_bytes.value_or(resident_bytes.value_or(0));
    (proportional_bytes ? any_proportional_ : any_resident_) = true;
  }

  void add(const MemorySum& other) {
    bytes_ += other.bytes_;
    any_proportional_ |= other.any_proportional_;
    any_resident_ |= other.any_resident_;
  }

  /// Whether anything could be read.
  bool any() const { return any_proportional_ || any_resident_; }

  std::uint64_t bytes() const { return bytes_; }

  /// "pss", "rss", or "pss or rss" where some processes have the one and some only the other.
  std::string_view metric() const {
    if (any_proportional_ && any_resident_) return "pss or rss";
    return any_proportional_ ? "pss" : "rss";
  }

 private:
  std::uint64_t bytes_ = 0;
  bool any_proportional_ = false, any_resident_ = false;
};

/// Whether reading a file of a process failed because the process has ended.
bool means_gone(const std::system_error& error);
/// Whether it failed because the process is another user's.
bool means_forbidden(const std::system_error& error);

/// Throws std::runtime_error, with the reason, where a process has no memory that could be measured: it is not there,
/// hidden, a kernel thread, or has ended and was not waited for.
void check_process(int pid, const std::string& root);

/// The result of measuring a process once. A process that could not be measured is never counted as 0.
struct Reading {
  enum class State { read, gone, refused };

  State state = State::gone;
  std::uint64_t bytes = 0;
};

/// Measures one figure of one process, again and again. It holds the process's folder in /proc open, so that another
/// process that gets the same pid is not mistaken for it.
class Probe {
 public:
  /// Throws std::system_error where there is no such process.
  Probe(int pid, Metric metric, const std::string& root = "/proc");

  Reading read();

  bool is_there();

  /// The name that it has now; the last known one where it is gone.
  const std::string& name();

 private:
  std::uint64_t read_without_page_tables();
  std::uint64_t read_rollup();

  Metric metric_;
  process::ProcessFolder folder_;
  process::Fd statm_;
  std::string name_;
  std::string buffer_;
};

}  // namespace cmt::watch
