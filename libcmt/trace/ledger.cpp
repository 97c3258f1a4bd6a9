#include "trace/ledger.h"

#include <algorithm>

namespace cmt {

Ledger::Entry Ledger::book(const Event& event) {
  Entry entry;
  if (event.tag != 0 && event.tag <= newest_) return entry;
  const auto found = event.old_tag != 0 ? live_.find(event.old_tag) : live_.end();
  entry.old_known = found != live_.end();
  if (event.old_tag >= first_tag_ && !entry.old_known) return entry;
  if (event.tag != 0 && event.old_tag >= event.tag) return entry;
  entry.accepted = true;
  newest_ = std::max({newest_, event.tag, event.old_tag});
  if (entry.old_known) {
    entry.old = found->second;
    if (event.ends_block()) {
      live_bytes_ -= entry.old.size;
      live_.erase(found);
    }
  }
  count(event);
  return entry;
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
    live_[event.tag] = {event.address, event.bytes()};
    live_bytes_ += event.bytes();
    ++totals_.allocations;
    totals_.allocated_bytes += event.bytes();
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
