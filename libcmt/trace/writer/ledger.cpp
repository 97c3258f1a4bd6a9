// Decides whether an event contradicts those before it, and adds up the totals of consecutive parts of a trace.

#include "libcmt/trace/writer/ledger.h"

#include <algorithm>
#include <cassert>

#include "libcmt/format/coding.h"

namespace cmt {

bool NewestPoolBlock::takes(const Event& event) {
  assert(is_of_pool(event.kind));
  if (event.label.empty() || event.label.size() > format::pool_name_limit) return false;
  if (event.pool_block == 0 || event.pool_block >= format::pool_block_limit) return false;
  const bool makes = event.kind == Kind::pool_malloc, is_newer = event.pool_block > number_;
  if (makes ? !is_newer : is_newer && has_made_) return false;
  has_made_ |= makes;
  if (is_newer) number_ = event.pool_block;
  return true;
}

Ledger::Entry Ledger::book(const Event& event) {
  if (is_of_pool(event.kind) && !newest_pool_block_.takes(event)) return {};
  if (event.tag != 0 && event.tag <= newest_) return {};
  const Entry entry = book(event, given_block(event));
  if (entry.accepted && event.tag != 0) live_.insert({event.tag, event.address, event.bytes()});
  return entry;
}

/// Returns the live block that an event is given, and removes it from the table if the event ends it.
LiveBlock Ledger::given_block(const Event& event) {
  if (event.old_tag == 0) return {};
  const LiveBlock* const given = event.ends_block() ? live_.erase(event.old_tag) : live_.find(event.old_tag);
  return given != nullptr ? *given : LiveBlock{};
}

Ledger::Entry Ledger::book(const Event& event, const LiveBlock& given) {
  assert(given.tag == 0 || given.tag == event.old_tag);
  Entry entry;
  if (event.tag != 0 && event.tag <= newest_) return entry;
  entry.old = given;
  entry.old_known = given.tag != 0;
  if (event.old_tag != 0 && !entry.old_known) {
    if (event.old_tag >= first_tag_ || (event.tag != 0 && event.old_tag >= event.tag)) return entry;
    newest_ = std::max(newest_, event.old_tag);
  }
  entry.accepted = true;
  if (event.tag != 0) {
    newest_ = event.tag;
    first_tag_ = std::min(first_tag_, event.tag);
  }
  assert(first_tag_ == unknown || first_tag_ <= newest_);
  tally_.count(event, entry.old);
  return entry;
}

void Tally::append(const Tally& later) {
  const Totals& more = later.totals_;
  assert(more.peak_live_bytes_event <= more.events);
  if (more.peak_live_bytes > totals_.peak_live_bytes) {
    totals_.peak_live_bytes = more.peak_live_bytes;
    totals_.peak_live_bytes_event = totals_.events + more.peak_live_bytes_event;
  }
  totals_.peak_live_blocks = std::max(totals_.peak_live_blocks, more.peak_live_blocks);
  totals_.events += more.events;
  totals_.failed += more.failed;
  totals_.allocations += more.allocations;
  totals_.allocated_bytes += more.allocated_bytes;
  totals_.end_live_blocks = more.end_live_blocks;
  totals_.end_live_bytes = more.end_live_bytes;
  for (std::size_t i = 0; i < more.by_kind.size(); ++i) totals_.by_kind[i] += more.by_kind[i];
  for (std::uint32_t thread = 0; thread < few_threads; ++thread) {
    if ((later.seen_[thread / 64] >> thread % 64 & 1) != 0) count_thread(thread);
  }
  for (const std::uint32_t thread : later.threads_) count_thread(thread);
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
