// The collector's side of the memory that it shares with the program: reading slots, memory of slots, clocks and
// wake-ups.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "preload/collector/drain/packed.h"
#include "preload/collector/drain/start_facts.h"
#include "preload/stack_share.h"

namespace cmt::collector {

std::uint64_t clock_ns(clockid_t clock = CLOCK_MONOTONIC);
/// The clock that the program's threads read for their stamps.
std::uint64_t clock_stamp(const StartFacts& facts);

/// Counts lines of interpreters' programs (InterpreterFrames).
struct InterpreterCounts {
  std::uint32_t named = 0;
  std::uint64_t unplaced = 0, nameless = 0;
};

/// The memory that program and collector share (preload/protocol.h), mapped here.
///
/// Threads: all threads may call all functions at once. Each access to the control block and the rings has the memory
/// order that protocol.h states for the field, or that a comment at the access states.
class RingMemory {
 public:
  /// Shared with a running program; or a copy of the memory that a program has left, which needs no room on its disk.
  enum class Access { shared, private_copy };

  /// Takes over `fd`, but not where it throws. `path` is for messages. `description`: a control block that the program
  /// cannot write to, from which the start facts are read; null: the shared one. Throws std::system_error, and
  /// FormatError if the file holds no rings.
  RingMemory(int fd, Access access, const std::string& path, const Control* description = nullptr);
  /// For a test in which this process is the program too: uses rings that it has mapped itself. `fd` remains the
  /// caller's.
  RingMemory(int fd, Control& mapped)
      : fd_(fd), bytes_(mapped.bytes), control_(&mapped), facts_(StartFacts::read(mapped).value()), is_owner_(false) {}
  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  const StartFacts& start_facts() const { return facts_; }
  /// For what the program and the collector write while they run.
  Control& control() { return *control_; }
  const Control& control() const { return *control_; }
  int descriptor() const { return fd_; }
  /// Whether the rings are a file from which a trace can be recovered. A thread may then overwrite only records that
  /// the trace's files have.
  bool is_recoverable() const { return !facts_.rings_path.empty(); }
  /// How much of a ring the trace's files had at the last saved state.
  const Saved& saved(const Ring& ring) const {
    return ring.saved[__atomic_load_n(&control_->saves, __ATOMIC_ACQUIRE) & 1];
  }
  /// How many rings are or were in use. These have the first numbers.
  std::uint32_t ring_count() const;
  Ring& ring(std::uint32_t number) { return *ring_at(control_, number); }
  /// The frames and modules of call stacks; null: no stacks are recorded, or the file is cut off.
  const StackShare* stack_share() const;
  /// The counts of all lines so far: zeros if no interpreter's frames are recorded.
  InterpreterCounts interpreter_counts() const;
  /// The number of events that are in no ring, because the ring was full or there was none.
  std::uint64_t lost_events();

  /// Where the slots of a ring are, in bytes from the begin of the memory, and how many, a power of two.
  struct Slots {
    std::uint64_t at = 0, count = 0;
  };
  /// Returns no slots if they are not all in the memory: a file may be cut off, and the program may write anything.
  Slots slots_of(const Ring& ring) const;

  /// Appends the records that are published from position `from` on, at most `count_max`, and returns how many.
  /// `blocks`, if not null, receives a copy of each record_block.
  std::size_t read(const Ring& ring, std::uint64_t from, std::uint64_t count_max, Packer& out,
                   std::vector<Slot>* blocks = nullptr) const;

  /// Appends a void record for each slot from position `from` on that is not published, if a published one follows
  /// before `end`. Returns how many. To be called only if nobody will publish these slots any more: their thread was
  /// killed in a signal handler after it had reserved them.
  std::size_t skip_unpublished(const Ring& ring, std::uint64_t from, std::uint64_t end, Packer& out) const;

  /// Allocates the memory of the slots between two positions, so that a write to them cannot fail. Returns false if
  /// there is no memory.
  bool allocate(const Ring& ring, std::uint64_t from, std::uint64_t to) const {
    return change_pages(ring, from, to, 0);
  }
  /// Gives the whole pages between two positions back to the kernel. Their slots then read as not published.
  void release(const Ring& ring, std::uint64_t from, std::uint64_t to) const;

  /// Raises the clock from which threads take coarse stamps to `stamp`, if it is less.
  void raise_clock(std::uint64_t stamp);
  /// Shows threads that wait that the collector goes on.
  void note_progress();
  /// Makes each thread of the program read the control block at its next event.
  void notify_threads();
  /// Whether threads must read the control block at every event, because recording is paused or at its end. A call of
  /// notify_threads() may come just before a write of a ring's `soft`. So the writer of `soft` asks.
  bool are_threads_notified() const;
  /// Ends the drainer's sleep.
  void ring_bell();
  /// Wakes all threads that wait for a word of the memory.
  static void wake(const void* word);

 private:
  const Slot* slots_at(std::uint64_t at) const {
    return reinterpret_cast<const Slot*>(reinterpret_cast<const char*>(control_) + at);
  }
  bool change_pages(const Ring& ring, std::uint64_t from, std::uint64_t to, int mode) const;

  int fd_;
  std::uint64_t bytes_ = 0;
  Control* control_ = nullptr;
  StartFacts facts_{};
  bool is_owner_ = true;
};

}  // namespace cmt::collector
