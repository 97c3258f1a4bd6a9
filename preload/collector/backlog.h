#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "preload/collector/packed.h"

namespace cmt::collector {

/// What the encoder is to do next.
struct WorkItem {
  enum class Type {
    records,     ///< append them to their ring's
    cut,         ///< all events with stamps up to here have been put: merge them
    flush,       ///< write what can be written, at the next cut
    checkpoint,  ///< the program asks for a whole trace, and goes on
    finish,      ///< the program asks for a whole trace, and ends
    end,         ///< the program has ended
  };
  Type type = Type::records;
  std::uint32_t ring = 0;         ///< of records
  std::uint32_t request = 0;      ///< of checkpoint and finish: its number
  std::uint64_t stamp = 0;        ///< of a cut
  std::uint64_t clock_stamp = 0;  ///< of a cut: a later stamp, and the time that it was
  std::uint64_t clock_ns = 0;
  Packed records{};
};

/// The queue in front of the encoder: in memory, then in a file without a name, both bounded.
///
/// The file consists of segments, each of which holds the records of one full ring, or of several that are not full. A
/// segment that has been read is written again before any other: its pages are in memory, and the file never becomes
/// longer than what waits. (A ring buffer took fresh pages all the time, up to 10 us each: 19 ns a record.)
///
/// Threads: several may put, one takes.
class Backlog {
 public:
  /// `folder`: of the file. Bounds in bytes.
  Backlog(std::string folder, std::uint64_t memory_max, std::uint64_t file_max)
      : folder_(std::move(folder)), memory_max_(memory_max), file_max_(file_max) {}
  ~Backlog();
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  /// Whether the records of all rings may be put. They may exceed the bounds for a while.
  bool has_room();
  void put(WorkItem item);
  /// Removes the oldest item; waits for one, at most so long.
  std::optional<WorkItem> wait_for_item(int milliseconds);
  /// How many records could not be read from the file, or will never come.
  std::uint64_t lost_records() const { return lost_records_; }
  void note_lost(std::uint64_t records) { lost_records_ += records; }

 private:
  struct Queued {
    WorkItem item;
    std::optional<std::uint64_t> offset{};  ///< of its records' words in the file; nothing: they are in memory
  };

  static constexpr std::uint64_t segment_bytes = std::uint64_t{ring_slots_large} * Packer::record_bytes_max;

  bool has_file_room(std::uint64_t bytes) const;
  std::optional<std::uint64_t> reserve_in_file(std::uint64_t bytes);
  void release_in_file(std::uint64_t offset);
  void write_to_file(Queued& queued);
  void read_from_file(Queued& queued);

  const std::string folder_;
  const std::uint64_t memory_max_, file_max_;
  std::atomic<std::uint64_t> lost_records_ = 0;
  std::condition_variable arrived_;
  std::mutex mutex_;  // guards all below
  std::deque<Queued> queue_;
  std::uint64_t memory_bytes_ = 0;
  std::vector<std::uint32_t> unread_items_;      // by segment
  std::vector<std::size_t> free_segments_;       // those without unread items, the one that was read last at the end
  std::size_t current_segment_ = 0;              // the one that is being filled,
  std::uint64_t current_bytes_ = segment_bytes;  // so far
  int file_ = -1;                                // opened once; after that it may be read without the mutex
  bool has_file_failed_ = false;
};

}  // namespace cmt::collector
