#pragma once

#include <tsl/robin_map.h>

#include <cstdint>

#include "cmt/event.h"
#include "libcmt/number_hash.h"

namespace cmt::analysis {

/// Tells temporary blocks: those that the next event of the thread that made them frees.
class LastMade {
 public:
  /// To be called for each event, in order. Whether it frees the block that its thread's event before has made.
  bool frees_temporary(const Event& event) {
    Tag& last = last_of(event.thread);
    const bool frees = event.ends_block() && event.old_tag == last && !event.makes_block();
    last = event.tag;
    return frees;
  }

  /// Instead of its events before: a thread has made a block, and may have had no event since.
  void set_last(std::uint32_t thread, Tag tag) { last_of(thread) = tag; }

 private:
  Tag& last_of(std::uint32_t thread) { return thread == 0 ? of_first_thread_ : by_thread_[thread]; }

  tsl::robin_map<std::uint32_t, Tag, NumberHash> by_thread_;  // the block that its last event made; 0: none
  Tag of_first_thread_ = 0;                                   // the same of thread 0, which needs no search
};

}  // namespace cmt::analysis
