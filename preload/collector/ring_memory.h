#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "preload/collector/packed.h"

namespace cmt::collector {

/// The memory that program and collector share, mapped here. Throws std::system_error.
class Memory {
 public:
  enum class Use { together, alone };  ///< with a program; or a copy, of what is left of one

  /// Takes over `fd`. Throws FormatError where it holds no rings.
  Memory(int fd, Use use, const std::string& path);
  /// Memory that is mapped in this process already, by a program that is this process, too. `fd` stays its own.
  Memory(int fd, Control& mapped) : fd_(fd), bytes_(mapped.bytes), control_(&mapped), is_ours_(false) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Control& control() { return *control_; }
  const Control& control() const { return *control_; }
  std::uint32_t process() const { return control_->process; }
  int descriptor() const { return fd_; }
  /// Whether the rings are a file, for a recovery: places are given back only when what was in them is saved.
  bool is_durable() const { return control_->rings_path[0] != 0; }
  const Saved& saved(const Ring& ring) const {
    return ring.saved[__atomic_load_n(&control_->saves, __ATOMIC_ACQUIRE) & 1];
  }
  /// Rings that a thread has or had.
  std::uint32_t ring_count() const;
  Ring& ring(std::uint32_t number) { return *ring_at(control_, number); }

  /// Whether all places of a ring are in the memory: a file may have been cut off.
  bool has_places(const Ring& ring) const;

  /// Adds the records that were published from place `from` on, at most so many, and returns how many.
  std::size_t read(const Ring& ring, std::uint64_t from, std::uint64_t count_max, Packer& out) const;

  /// Adds a void record for each place from `from` on that is not published, if one behind them is, before `end`, and
  /// returns how many. For when nobody will publish them: who had reserved them was killed in a signal handler's time.
  std::size_t skip(const Ring& ring, std::uint64_t from, std::uint64_t end, Packer& out) const;

  /// Makes places from one to another writable. False where there is no memory.
  bool back(const Ring& ring, std::uint64_t from, std::uint64_t to) const;
  /// Gives the memory of whole pages between two places back; they read as not published.
  void release(const Ring& ring, std::uint64_t from, std::uint64_t to) const;

  /// Wakes who waits for a word of the memory.
  static void wake(const void* word);

 private:
  const Slot* places(const Ring& ring) const {
    return reinterpret_cast<const Slot*>(reinterpret_cast<const char*>(control_) + ring.slots_at);
  }
  void allocate(const Ring& ring, std::uint64_t from, std::uint64_t to, int mode, bool& done) const;

  int fd_;
  std::uint64_t bytes_ = 0;
  Control* control_ = nullptr;
  bool is_ours_ = true;
};

}  // namespace cmt::collector
