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

/// Parcels on their way, in order: so many bytes in memory, the rest in a file without a name, up to a bound. One
/// thread puts, one takes.
///
/// The file has places for parcels of one ring each; smaller ones share one. What was read last is written first: its
/// memory is warm, and the file takes no more of the machine's than what waits. (Written round and round up to its
/// bound it took fresh pages all the time, and under a hypervisor one of those costs up to 10 us: 19 ns a record.)
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

  static constexpr std::uint64_t place_bytes = std::uint64_t{ring_slots_big} * Packer::record_bytes_max;

  bool opens_file();
  bool has_place(std::uint64_t bytes) const;
  std::optional<std::uint64_t> reserve(std::uint64_t bytes);
  void release(std::uint64_t offset);
  void spill(Entry& entry);
  void fetch(Entry& entry);

  std::string folder_;
  std::uint64_t memory_max_, file_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Entry> entries_;
  std::uint64_t in_memory_ = 0;
  std::vector<std::uint32_t> unread_;   // parcels in each place of the file
  std::vector<std::size_t> free_;       // places that have none, the one that was read last at the end
  std::size_t place_ = 0;               // that is being filled,
  std::uint64_t filled_ = place_bytes;  // so far
  int file_ = -1;
  bool file_failed_ = false;
  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace cmt::collector
