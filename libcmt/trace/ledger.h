#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "cmt/header.h"
#include "format/live_blocks.h"

namespace cmt {

/// Keeps the totals of a trace as its events go by, and refuses an event that contradicts those before it. Memory: the
/// live blocks.
class Ledger {
 public:
  struct Entry {
    bool accepted = false;
    bool old_known = false;  ///< the block that the event was given is live, and is `old`
    format::LiveBlock old;
  };

  /// Books an event, unless it makes a block whose tag is not above all named before, or is given one of this trace
  /// that is not live.
  Entry book(const Event& event);

  const Totals& totals() const { return totals_; }
  Totals& totals() { return totals_; }
  const format::LiveBlocks& live() const { return live_; }

 private:
  bool book_old(const Event& event, Entry& entry);
  void count(const Event& event);

  Totals totals_;
  format::LiveBlocks live_;
  Tag first_tag_ = unknown;  // of the first allocation
  Tag newest_ = 0;           // the highest named
  std::uint64_t live_bytes_ = 0;
  std::uint32_t last_thread_ = 0;
  std::unordered_set<std::uint32_t> threads_;
};

}  // namespace cmt
