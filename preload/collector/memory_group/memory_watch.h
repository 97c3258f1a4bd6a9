/// Watches the memory around a program, and asks for the kept events before the kernel kills it (--keep-at).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preload/collector/memory_group/memory_mark.h"
#include "preload/collector/memory_group/memory_source.h"

namespace cmt::collector {

/// One for each recording.
///
/// Threads: the watch's own thread calls look() and wait(), the thread that encodes all others.
class MemoryWatch {
 public:
  /// `groups` and `of_recorder`: of the process and of the recorder, as find_memory_groups() returns them. `proc`:
  /// /proc. `start_ns`: of the recording.
  MemoryWatch(KeepAt at, std::vector<MemorySource> groups, std::vector<MemorySource> of_recorder,
              const std::string& proc, std::uint32_t process, std::uint64_t start_ns);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  /// Returns a word for the status file about the source that is watched: "group", "machine" or "process".
  std::string_view watched() const;
  /// Waits until the next look is due, or `finished_fd` is readable. Returns whether there is pressure on memory.
  bool wait(int finished_fd) const;
  /// Reads the memory. Returns whether to write the kept events now.
  bool look(std::uint64_t now_ns, bool is_pressed);

  /// The events that look() has asked for are written.
  void note_written(std::uint64_t now_ns, std::uint64_t took_ns);
  /// The value of the key `memory` (format-spec/text.md), as of the last look that is not after `until_ns`. Empty:
  /// there was none.
  std::string text(std::uint64_t until_ns) const;

 private:
  struct Look {
    std::uint64_t ns;
    std::string_view kind;  // what the figures are of
    MemoryFigures memory;
    std::uint64_t recorder;  // bytes of the collector that `memory` includes
  };

  std::optional<std::pair<const MemorySource*, MemoryFigures>> read_fullest() const;
  bool has_recorder(const MemorySource& source) const;

  const bool is_share_;
  const std::string process_;  // its folder in /proc
  const bool sees_process_;
  const std::uint64_t start_ns_;
  std::vector<MemorySource> sources_;
  const std::vector<MemorySource> of_recorder_;
  int pressure_fd_ = -1;
  std::uint64_t kills_before_ = 0;  // of other programs
  std::uint64_t killed_ns_ = 0;     // the last kill, of whatever process
  std::atomic<std::uint64_t> kills_ = 0;
  int wait_ms_ = 0;
  mutable std::mutex mutex_;  // of what follows
  MemoryMark mark_;
  std::deque<Look> looks_;  // the last ones, since what is written may be older than the newest
};

}  // namespace cmt::collector
