#include "trace/ledger.h"

#include <algorithm>

namespace cmt {

Ledger::Entry Ledger::book(const Event& event) {
  Entry entry;
  if (event.tag != 0 && event.tag <= newest_) return entry;
  if (event.old_tag != 0 && !book_old(event, entry)) return entry;
  entry.accepted = true;
  newest_ = std::max(newest_, event.tag);
  count(event);
  return entry;
}

/// Books the block that an event was given. False where that is no block that it can be given.
bool Ledger::book_old(const Event& event, Entry& entry) {
  if (event.ends_block()) {
    if (const std::optional<format::LiveBlock> ended = live_.erase(event.old_tag)) {
      live_bytes_ -= ended->size;
      entry.old = *ended;
    }
  } else if (const format::LiveBlock* const given = live_.find(event.old_tag)) {
    entry.old = *given;
  }
  entry.old_known = entry.old.tag != 0;
  if (entry.old_known) return true;
  if (event.old_tag >= first_tag_ || (event.tag != 0 && event.old_tag >= event.tag)) return false;
  newest_ = std::max(newest_, event.old_tag);
  return true;
}

void Ledger::count(const Event& event) {
  ++totals_.events;
  ++totals_.by_kind[static_cast<std::size_t>(event.kind)];
  if (totals_.threads == 0 || event.thread != last_thread_) {
    last_thread_ = event.thread;
    threads_.insert(event.thread);
    totals_.threads = threads_.size();
  }
  if (event.failed()) ++totals_.failed;
  if (event.tag != 0) {
    first_tag_ = std::min(first_tag_, event.tag);
    const std::uint64_t bytes = event.bytes();
    live_.insert({event.tag, event.address, bytes});
    live_bytes_ += bytes;
    ++totals_.allocations;
    totals_.allocated_bytes += bytes;
  }
  if (live_bytes_ > totals_.peak_live_bytes) {
    totals_.peak_live_bytes = live_bytes_;
    totals_.peak_live_bytes_event = totals_.events;
  }
  totals_.peak_live_blocks = std::max<std::uint64_t>(totals_.peak_live_blocks, live_.size());
  totals_.end_live_blocks = live_.size();
  totals_.end_live_bytes = live_bytes_;
}

}  // namespace cmt
