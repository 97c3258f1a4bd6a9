#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cmt::process {

/// What /proc/PID/status says, of memory in bytes. Kernels keep these counters a processor and may be some tens of
/// pages behind; smaps is exact and dear.
struct Status {
  std::uint64_t resident_bytes_peak = 0;  ///< VmHWM: since the start, or since `5` was written to clear_refs
  std::uint64_t resident_bytes = 0;       ///< VmRSS: the sum of the next three
  std::uint64_t resident_anonymous_bytes = 0;
  std::uint64_t resident_file_bytes = 0;
  std::uint64_t resident_shared_bytes = 0;
  std::uint64_t swapped_bytes = 0;
  std::uint64_t threads = 0;
  int tracer = 0;                     ///< the thread that traces it with ptrace; 0: none
  std::uint64_t blocked_signals = 0;  ///< bit 0 is signal 1
};

/// What is missing from the text stays 0: a kernel thread has no memory of its own.
Status parse_status(std::string_view text);

Status read_status(int pid, const std::string& root = "/proc");

/// /proc/PID/statm, in pages: 10 us a reading, for a timeline.
struct Statm {
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  std::uint64_t shared_pages = 0;  ///< file pages and shared memory: resident less shared is anonymous
};

Statm parse_statm(std::string_view text);

Statm read_statm(int pid, const std::string& root = "/proc");

}  // namespace cmt::process
