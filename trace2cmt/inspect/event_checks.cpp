#include "event_checks.h"

#include "toolkit/output/numbers.h"

namespace trace2cmt {
namespace {

std::string block_text(cmt::Tag tag, std::uint64_t address) {
  return cmt::output::hex(address) + "<" + std::to_string(tag) + ">";
}

}  // namespace

void EventChecks::take(const cmt::Event& event) {
  check_time(event);
  const cmt::Ledger::Entry entry = ledger_.book(event);
  if (!entry.accepted) return fault_("its tag contradicts the events before");
  if (entry.old_known) check_given(event, entry.old);
  if (event.tag != 0 && event.address != 0) check_place(event);
}

void EventChecks::check_time(const cmt::Event& event) {
  if (event.time_ns == cmt::unknown) return;
  if (event.time_ns < last_time_ns_) {
    fault_("time goes back from " + std::to_string(last_time_ns_) + " to " + std::to_string(event.time_ns));
  }
  last_time_ns_ = event.time_ns;
}

void EventChecks::check_given(const cmt::Event& event, const cmt::format::LiveBlock& old) {
  if (event.old_address != 0 && old.address != 0 && event.old_address != old.address) {
    fault_("it is given " + block_text(event.old_tag, event.old_address) +
           ", which was made at another address: " + block_text(old.tag, old.address));
  }
  if (event.ends_block() && old.address != 0) places_.erase(old.address);
}

/// A block that would lie on another is not put among the places.
void EventChecks::check_place(const cmt::Event& event) {
  const cmt::heap::PlacedBlock block{.address = event.address, .size = event.bytes(), .tag = event.tag};
  const auto placed = places_.insert(block);
  if (!placed) return fault_(block_text(event.tag, event.address) + " begins where a live block begins");
  const bool on_next = placed->next.address != 0 && placed->next.address <= block.last();
  const bool on_prev = placed->prev.address != 0 && placed->prev.last() >= block.address;
  if (!on_next && !on_prev) return;
  const cmt::heap::PlacedBlock& other = on_next ? placed->next : placed->prev;
  fault_(block_text(event.tag, event.address) + " lies on a live block: " + block_text(other.tag, other.address));
  places_.erase(block.address);
}

std::vector<std::string> differences(const cmt::Totals& stated, const cmt::Totals& counted) {
  std::vector<std::string> all;
  const auto compare = [&](std::string_view what, std::uint64_t states, std::uint64_t counts) {
    if (states == counts) return;
    all.push_back("totals: " + std::string(what) + " is " + std::to_string(states) + ", the events say " +
                  std::to_string(counts));
  };
  compare("events", stated.events, counted.events);
  compare("failed_calls", stated.failed, counted.failed);
  compare("allocated_blocks", stated.allocations, counted.allocations);
  compare("allocated_bytes", stated.allocated_bytes, counted.allocated_bytes);
  compare("peak_live_blocks", stated.peak_live_blocks, counted.peak_live_blocks);
  compare("peak_live_bytes", stated.peak_live_bytes, counted.peak_live_bytes);
  compare("peak_live_bytes_event", stated.peak_live_bytes_event, counted.peak_live_bytes_event);
  compare("end_live_blocks", stated.end_live_blocks, counted.end_live_blocks);
  compare("end_live_bytes", stated.end_live_bytes, counted.end_live_bytes);
  compare("threads", stated.threads, counted.threads);
  for (std::size_t kind = 0; kind < cmt::kind_limit; ++kind) {
    // The reader has replaced events of unknown kinds, so the counts of the known ones may differ.
    if (stated.by_kind[kind] != 0 && !is_known(static_cast<cmt::Kind>(kind))) return all;
  }
  for (std::size_t kind = 0; kind < cmt::kind_limit; ++kind) {
    compare(name(static_cast<cmt::Kind>(kind)), stated.by_kind[kind], counted.by_kind[kind]);
  }
  return all;
}

}  // namespace trace2cmt
