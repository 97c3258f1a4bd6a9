#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "preload/collector/packed.h"

namespace cmt::collector {

/// What the drainer hands to the encoder.
struct Parcel {
  enum class Type { records, cut, checkpoint, finish, end };
  Type type = Type::records;
  std::uint32_t ring = 0;         ///< of records
  std::uint64_t stamp = 0;        ///< of a cut: up to where
  std::uint64_t clock_stamp = 0;  ///< of a cut: a stamp and the time that it was
  std::uint64_t clock_ns = 0;
  std::uint64_t value = 0;  ///< of a request: which
  Packed records{};
};

/// Parcels on their way, in order: so many bytes in memory, the rest in a file without a name, up to a bound, which is
/// written round and round. One thread puts, one takes.
class Backlog {
 public:
  /// `folder`: of the file. Bounds in bytes.
  Backlog(std::string folder, std::uint64_t memory_max, std::uint64_t file_max)
      : folder_(std::move(folder)), memory_max_(memory_max), file_max_(file_max) {}
  ~Backlog();
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  /// Whether records may come: those of all rings, which are then beyond the bounds for a while.
  bool has_room();
  void put(Parcel parcel);
  /// Waits for the next one; nothing after `milliseconds`.
  std::optional<Parcel> take(int milliseconds);
  /// How many records could not be read from the file again.
  std::uint64_t lost() const { return lost_; }

 private:
  struct Entry {
    Parcel parcel;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  ///< of its records, in the file at `offset`
  };

  std::optional<std::uint64_t> place_in_file(std::uint64_t bytes) const;
  bool spill(Entry& entry);
  void fetch(Entry& entry);

  std::string folder_;
  std::uint64_t memory_max_, file_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Entry> entries_;
  std::uint64_t in_memory_ = 0, in_file_ = 0;
  std::uint64_t file_begin_ = 0, file_end_ = 0;  // of what is in the file; the end is before the begin after a turn
  int file_ = -1;
  bool file_failed_ = false;
  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace cmt::collector
