#include "trace2cmt/inspect/verify.h"

#include "toolkit/output/numbers.h"

namespace trace2cmt {
namespace {

std::string block_text(cmt::Tag tag, std::uint64_t address) {
  return cmt::output::hex(address) + "<" + std::to_string(tag) + ">";
}

/// A text whose recording broke off says so; one that was cut off cannot.
bool says_its_end(const TraceFile& file) {
  constexpr std::uint64_t end_size = 64;
  const std::string end = file.at(file.size() < end_size ? 0 : file.size() - end_size, end_size);
  return end.find("\n#cmt end=truncated") != std::string::npos;
}

}  // namespace

Verdict verify(const TraceFile& file, const TellFault& tell) {
  if (file.is_cmt()) return verify_cmt(file, tell);
  Verdict verdict;
  const auto fault = [&](const std::string& place, const std::string& what) {
    ++verdict.faults;
    tell(place + ": " + what);
  };
  cmt::ReadOptions options;
  options.on_defect = [&](const cmt::Defect& defect) { fault(defect.place, defect.what); };
  cmt::Reader reader = file.reader(options);
  std::size_t at = 0;  // in the batch
  EventChecks checks([&](const std::string& what) { fault(reader.place(at), what); });
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    for (at = 0; at < batch.size(); ++at) checks.check(batch[at]);
  }
  if (reader.truncated() && !says_its_end(file) && verdict.faults == 0)
    fault(file.name(), "the end of the trace is missing");
  verdict.checked =
      cmt::output::with_commas(checks.totals().events) + " events: all that reading checks, tags, addresses, times";
  return verdict;
}

void EventChecks::check(const cmt::Event& event) {
  check_time(event);
  const cmt::Ledger::Entry entry = ledger_.book(event);
  if (!entry.accepted) return tell_("its tag contradicts the events before");
  if (entry.old_known) check_old_block(event, entry.old);
  if (event.tag != 0 && event.address != 0) check_overlap(event);
}

void EventChecks::check_time(const cmt::Event& event) {
  if (event.time_ns == cmt::unknown) return;
  if (event.time_ns < last_time_ns_) {
    tell_("time goes back from " + std::to_string(last_time_ns_) + " to " + std::to_string(event.time_ns));
  }
  last_time_ns_ = event.time_ns;
}

void EventChecks::check_old_block(const cmt::Event& event, const cmt::format::LiveBlock& old) {
  if (event.old_address != 0 && old.address != 0 && event.old_address != old.address) {
    tell_("it is given " + block_text(event.old_tag, event.old_address) +
          ", which was made at another address: " + block_text(old.tag, old.address));
  }
  if (event.ends_block() && old.address != 0) by_address_.erase(old.address);
}

/// An overlapping block is reported once: it is not kept in the index.
void EventChecks::check_overlap(const cmt::Event& event) {
  const cmt::heap::PlacedBlock block{.address = event.address, .size = event.bytes(), .tag = event.tag};
  const auto placed = by_address_.insert(block);
  if (!placed) return tell_(block_text(event.tag, event.address) + " begins where a live block begins");
  const bool on_next = placed->next.address != 0 && placed->next.address <= block.last();
  const bool on_prev = placed->prev.address != 0 && placed->prev.last() >= block.address;
  if (!on_next && !on_prev) return;
  const cmt::heap::PlacedBlock& other = on_next ? placed->next : placed->prev;
  tell_(block_text(event.tag, event.address) + " lies on a live block: " + block_text(other.tag, other.address));
  by_address_.erase(block.address);
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
  for (std::size_t kind = 0; kind < cmt::kind_count; ++kind) {
    compare(name(static_cast<cmt::Kind>(kind)), stated.by_kind[kind], counted.by_kind[kind]);
  }
  return all;
}

}  // namespace trace2cmt
