// The queue between the drainer and the encoder, in memory and then in a file, which must not make a starving encoder
// block the drainer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "preload/collector/drain/packed.h"

namespace cmt::collector {

/// The next task of the encoder.
struct WorkItem {
  enum class Type {
    records,     ///< append the records to those of their ring
    cut,         ///< all events with stamps up to `stamp` have been put: merge them
    flush,       ///< write all complete events at the next cut
    profile,     ///< write a profile at the next cut
    mark,        ///< memory is scarce: write the kept events at the next cut
    checkpoint,  ///< the program asks for a whole trace, and goes on
    finish,      ///< the program asks for a whole trace, and ends
    end,         ///< the program has ended
  };
  Type type = Type::records;
  std::uint32_t ring = 0;         ///< of records
  std::uint32_t request = 0;      ///< of checkpoint and finish: its number
  std::uint64_t stamp = 0;        ///< of a cut
  std::uint64_t clock_stamp = 0;  ///< of a cut: a later stamp, and its time
  std::uint64_t clock_ns = 0;     ///< of a flush: when it was asked for
  Packed records{};

  /// Whether somebody waits until the task is done.
  bool is_request() const { return type > Type::cut; }
};

/// The encoder's queue: in memory, then in an unnamed file. Both are bounded.
///
/// The file consists of segments. Each has the records of one full ring, or of several that are not full. A segment
/// that has been read is written again before any other: its pages are in memory, and the file never becomes longer
/// than the waiting records. (A ring buffer took fresh pages all the time, up to 10 us each: 19 ns a record.)
///
/// The memory consists of slabs, which are filled one after the other. A slab is used again when all of its items have
/// been taken. Slabs are small as long as little waits, and later of the size of a huge page (huge_blocks.cpp). A
/// buffer for each item took a page fault for each 4 KiB.
///
/// Threads: several may put, one takes. None of them may be a thread that can starve (idle_worker.h), because those
/// that put would wait for it. A starving thread must not hold one of malloc's locks either. So next_item() returns a
/// copy of the records, in memory of the calling thread, and the memory of the putting thread is used again.
class Backlog {
 public:
  /// `folder`: of the file. The bounds are in bytes.
  Backlog(std::string folder, std::uint64_t memory_max, std::uint64_t file_max)
      : folder_(std::move(folder)), memory_max_(memory_max), file_max_(file_max) {
    spare_slabs_.reserve(spare_words_max / slab_words_min);  // so that release_in_slab() allocates nothing
  }
  ~Backlog();
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  /// Whether the records of all rings may be put. The queue may exceed the bounds for a while.
  bool has_room();
  void put(WorkItem item) {
    const Packed records = std::move(item.records);
    put_words(std::move(item), {records.words.get(), records.size}, records.count);
  }
  /// Puts the records that were appended to a packer since the last call.
  void put_records(std::uint32_t ring, Packer& packer) {
    put_words({.ring = ring}, packer.words(), packer.count());
    packer.clear();
  }
  /// Waits until so many records or a request are in the queue, at most so long. Returns whether they are.
  bool wait_for_records(std::uint64_t count, int milliseconds);
  /// Removes the oldest item, if there is one.
  std::optional<WorkItem> next_item();

  /// The items in the queue.
  struct Waiting {
    std::uint64_t records = 0, bytes = 0, requests = 0;
  };
  Waiting waiting();
  /// How many bytes may wait.
  std::uint64_t bytes_max();

  /// How many records were not readable in the file, or will never come.
  std::uint64_t lost_records() const { return lost_records_; }
  void note_lost(std::uint64_t records) { lost_records_ += records; }

 private:
  using Words = std::span<const std::uint64_t>;

  /// Memory for the words of several items.
  struct Slab {
    explicit Slab(std::size_t words) : all(std::make_unique_for_overwrite<std::uint64_t[]>(words)), size(words) {}

    std::unique_ptr<std::uint64_t[]> all;
    std::size_t size, used = 0;  // words
    std::size_t untaken = 0;     // items
  };

  /// An item of the queue. Its records' words are in the file at `offset`, or at `words` in a slab.
  struct Queued {
    WorkItem item;
    std::optional<std::uint64_t> offset{};
    std::uint64_t* words = nullptr;
    Slab* slab = nullptr;
    std::unique_ptr<Queued> next{};
  };

  static constexpr std::uint64_t segment_bytes = std::uint64_t{ring_slots_large} * Packer::record_bytes_max;
  static constexpr std::size_t slab_words_min = 1 << 13, slab_words_max = 1 << 18, spare_words_max = 1 << 20;

  bool has_records(std::uint64_t count) const {
    return count == 0 ? first_ != nullptr : waiting_.records >= count || waiting_.requests != 0;
  }
  void put_words(WorkItem item, Words words, std::size_t count);
  void reserve_in_slab(Queued& queued, std::size_t words);
  std::unique_ptr<Slab> take_spare(std::size_t words);
  std::unique_ptr<Slab> release_in_slab(Slab& slab);
  bool has_file_room(std::uint64_t bytes) const;
  std::optional<std::uint64_t> reserve_in_file(std::uint64_t bytes);
  void release_in_file(std::uint64_t offset);
  bool write_to_file(Queued& queued, Words words);
  void read_from_file(Queued& queued);

  const std::string folder_;
  const std::uint64_t memory_max_, file_max_;
  std::atomic<std::uint64_t> lost_records_ = 0;
  std::condition_variable arrived_;
  std::mutex mutex_;               // guards all below
  std::unique_ptr<Queued> first_;  // the oldest
  Queued* last_ = nullptr;
  Waiting waiting_;
  std::uint64_t awaited_records_ = 0;  // the count of the last wait_for_records()
  std::uint64_t memory_bytes_ = 0;
  std::vector<std::unique_ptr<Slab>> slabs_;  // with untaken items, in the order of filling; the last is being filled
  std::vector<std::unique_ptr<Slab>> spare_slabs_;
  std::size_t spare_words_ = 0;
  std::vector<std::uint32_t> unread_items_;      // by segment
  std::vector<std::size_t> free_segments_;       // those without unread items, the one that was read last at the end
  std::size_t current_segment_ = 0;              // the one that is being filled
  std::uint64_t current_bytes_ = segment_bytes;  // of it so far
  int file_ = -1;                                // opened once; after that it may be read without the mutex
  bool has_file_failed_ = false;
};

}  // namespace cmt::collector
