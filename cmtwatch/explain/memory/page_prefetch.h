/// Reads pages on a thread of its own, while another thread looks at those before them.
#pragma once

#include <cstdint>
#include <semaphore>
#include <thread>
#include <vector>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// One range of whole pages at a time. The one thread that uses this calls begin() and take() in turns. With one
/// processor, or if the system has no more threads, begin() itself reads.
class PagePrefetch {
 public:
  /// Borrows the memory, of which the thread calls read_pieces() alone.
  explicit PagePrefetch(AddressSpace& memory) : memory_(memory) {}
  ~PagePrefetch();
  PagePrefetch(const PagePrefetch&) = delete;
  PagePrefetch& operator=(const PagePrefetch&) = delete;

  /// Begins to read a range, and forgets one that was not taken.
  void begin(Range range);
  /// The range that was begun and not taken; empty: none.
  Range range() const { return range_; }
  /// Waits for the range, and exchanges its bytes for those of the caller. Returns false if the memory is gone.
  bool take(std::vector<std::uint8_t>& bytes);

 private:
  bool has_thread();
  void read_all();
  void read() noexcept;

  AddressSpace& memory_;
  Range range_{};
  std::vector<std::uint8_t> bytes_;
  AddressSpace::ReadPlan plan_;
  bool is_whole_ = false, is_tried_ = false, ends_ = false;
  std::binary_semaphore wanted_{0}, done_{0};
  std::thread thread_;
};

}  // namespace cmt::watch::explain
