#include "libcmt/trace/ledger.h"

#include <algorithm>

namespace cmt {

Ledger::Entry Ledger::book(const Event& event) {
  Entry entry;
  if (event.tag != 0 && event.tag <= newest_) return entry;
  if (event.old_tag != 0 && !book_old(event, entry)) return entry;
  entry.accepted = true;
  if (event.tag != 0) {
    newest_ = event.tag;
    first_tag_ = std::min(first_tag_, event.tag);
    live_.insert({event.tag, event.address, event.bytes()});
  }
  tally_.count(event, entry.old);
  return entry;
}

/// Books the block that an event was given. False where that is no block that it can be given.
bool Ledger::book_old(const Event& event, Entry& entry) {
  if (event.ends_block()) {
    if (const format::LiveBlock* const ended = live_.erase(event.old_tag)) entry.old = *ended;
  } else if (const format::LiveBlock* const given = live_.find(event.old_tag)) {
    entry.old = *given;
  }
  entry.old_known = entry.old.tag != 0;
  if (entry.old_known) return true;
  if (event.old_tag >= first_tag_ || (event.tag != 0 && event.old_tag >= event.tag)) return false;
  newest_ = std::max(newest_, event.old_tag);
  return true;
}

void Tally::count_new_thread(std::uint32_t thread) {
  if (thread < few_threads) {
    seen_[thread / 64] |= std::uint64_t{1} << thread % 64;
    ++totals_.threads;
  } else if (threads_.insert(thread).second) {
    ++totals_.threads;
  }
}

}  // namespace cmt
