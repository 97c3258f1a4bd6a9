// The checks of single events, of a text or legacy trace, and of totals. verify_cmt.cpp checks the structure of a .cmt.

#include "trace2cmt/inspect/verify.h"

#include <algorithm>
#include <cassert>

#include "toolkit/output/numbers.h"
#include "trace2cmt/inspect/info.h"

namespace cmt::trace2cmt {
namespace {

std::string block_text(cmt::Tag tag, std::uint64_t address) {
  return cmt::output::hex(address) + "<" + std::to_string(tag) + ">";
}

/// Whether the end line of a text says that its recording broke off. If not, the file was cut.
bool has_truncated_end(const TraceFile& file) {
  constexpr std::uint64_t end_size = 64;
  const std::string end = file.at(file.size() < end_size ? 0 : file.size() - end_size, end_size);
  return end.find("\n#cmt end=truncated") != std::string::npos;
}

using Figures = std::vector<std::pair<std::string_view, std::uint64_t>>;

/// The totals that follow from the events: all but the number of repairs.
Figures figures_of(const cmt::Totals& totals, bool with_kinds) {
  Figures figures;
  const auto add = [&](std::string_view key, const auto& value, std::string_view) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(value)>>) {
      if (key != "repairs") figures.emplace_back(key, value);
    }
  };
  describe(add, totals);
  for (std::size_t kind = 0; with_kinds && kind < cmt::kind_limit; ++kind) {
    figures.emplace_back(cmt::kind_name(kind), totals.by_kind[kind]);
  }
  return figures;
}

}  // namespace

std::string missing_end(std::uint64_t events) {
  return "the end of the trace is missing: it breaks off after " +
         (events == 0 ? "its header" : cmt::output::counted(events, "whole event"));
}

Verdict verify(const TraceFile& file, unsigned jobs, const ReportFault& report) {
  if (file.is_cmt()) return verify_cmt(file, jobs, report);
  Verdict verdict;
  const auto fault = [&](const std::string& place, const std::string& what, std::uint64_t count = 1) {
    verdict.faults += count;
    report(place, what, count);
  };
  cmt::ReadOptions options;
  options.stacks = true;
  options.threads = jobs;
  options.on_defect = [&](const cmt::Defect& defect) { fault(defect.place, defect.what, defect.count); };
  cmt::Reader reader = file.reader(options);
  std::size_t at = 0;  // in the batch
  EventChecks checks([&](const std::string& what) { fault(reader.place(at), what); });
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    for (at = 0; at < batch.size(); ++at) checks.check(batch[at]);
  }
  if (reader.truncated() && !has_truncated_end(file) && verdict.faults == 0)
    fault(file.name(), missing_end(checks.totals().events));
  verdict.checked = checks.totals().events == 0 ? "it is empty"
                                                : cmt::output::counted(checks.totals().events, "event") +
                                                      ": all that reading checks, tags, addresses, times, stacks";
  return verdict;
}

void EventChecks::check(const cmt::Event& event) { check(event, ledger_.book(event)); }

void EventChecks::check(std::span<const cmt::Event> events, std::span<const cmt::LiveBlock> given) {
  assert(given.size() == events.size());
  constexpr std::size_t far = 12, near = 6;
  const auto address = [&](std::size_t i) {
    const cmt::Event& event = events[std::min(i, events.size() - 1)];
    return event.address | event.old_address;
  };
  for (at_ = 0; at_ < events.size(); ++at_) {
    if (!by_address_.is_cached()) {
      by_address_.prefetch_page(address(at_ + far));
      by_address_.prefetch_blocks(address(at_ + near));
    }
    check(events[at_], ledger_.book(events[at_], given[at_]));
  }
}

void EventChecks::check(const cmt::Event& event, const cmt::Ledger::Entry& entry) {
  check_time(event);
  if (event.kind == cmt::Kind::sampling_interval && event.size < interval_)
    report_("the sampling interval falls from " + std::to_string(interval_) + " to " + std::to_string(event.size));
  if (event.kind == cmt::Kind::sampling_interval) interval_ = event.size;
  if (!entry.accepted) return report_("its tag contradicts the events before");
  if (entry.old_known) check_old_block(event, entry.old);
  if (entry.old_known && cmt::names_pages(event.kind)) check_run(event, entry.old);
  if (entry.old_known && event.kind == cmt::Kind::discard) check_discard(event, entry.old);
  if (event.tag != 0 && event.address != 0) check_overlap(event);
}

void EventChecks::check_time(const cmt::Event& event) {
  if (event.time_ns == cmt::unknown) return;
  if (event.time_ns < last_time_ns_) {
    report_("time goes back from " + std::to_string(last_time_ns_) + " to " + std::to_string(event.time_ns));
  }
  last_time_ns_ = event.time_ns;
}

void EventChecks::check_old_block(const cmt::Event& event, const cmt::format::LiveBlock& old) {
  if (event.old_address != 0 && old.address != 0 && event.old_address != old.address) {
    report_("it is given " + block_text(event.old_tag, event.old_address) +
            ", which was made at another address: " + block_text(old.tag, old.address));
  }
  if (!event.ends_block()) return;
  cmt::heap::PlacedBlock ended;
  if (old.address != 0) by_address_.take(old.address, ended);
  if (old.size < pages_size_min_) return;
  pages_.end_block(event.old_tag);
  touched_.erase(event.old_tag);
}

void EventChecks::check_run(const cmt::Event& event, const cmt::format::LiveBlock& block) {
  cmt::heap::RunBytes bytes = cmt::heap::bytes_of(event, block.address, block.size);
  if (bytes.is_wrong) report_("it names pages that are not in " + block_text(block.tag, block.address));
  // If the block's address is not known and a run begins with the block, only one byte of its last page is certain.
  const bool is_rough = block.address == 0 && bytes.begin == 0 && event.count != 0;
  if (is_rough) bytes.end = std::min(bytes.end, (event.count - 1) * event.alignment + 1);
  if (pages_.has_any(block.tag, bytes.begin, bytes.end)) {
    report_("it names pages that an earlier event has named, of " + block_text(block.tag, block.address));
  } else if (event.kind == cmt::Kind::resident && touched_.contains(block.tag)) {
    report_("it names pages that were in memory before, after an event of touched pages, of " +
            block_text(block.tag, block.address));
  }
  pages_size_min_ = std::min(pages_size_min_, block.size);
  if (event.kind == cmt::Kind::touch) touched_.insert(block.tag);
  pages_.add(event, bytes, block.size);
}

/// Pages that were given back may be touched again. Some of them may be resident then, if nobody could ask.
void EventChecks::check_discard(const cmt::Event& event, const cmt::format::LiveBlock& block) {
  const cmt::heap::RunBytes bytes = cmt::heap::discarded_bytes_of(event, block.size);
  if (bytes.is_wrong) report_("it gives back pages that are not in " + block_text(block.tag, block.address));
  pages_.drop(block.tag, bytes);
  touched_.erase(block.tag);
}

/// An overlapping block is reported once, because it is not kept in the index.
void EventChecks::check_overlap(const cmt::Event& event) {
  cmt::heap::Neighbourhood place{
      .block = {.address = event.address, .size = event.bytes(), .tag = event.tag}, .prev = {}, .next = {}};
  if (by_address_.insert_apart(place.block) == 0) return;
  if (!by_address_.insert(place))
    return report_(block_text(event.tag, event.address) + " begins where a live block begins");
  assert(place.overlapped() != nullptr);
  const cmt::heap::Neighbour& other = *place.overlapped();
  report_(block_text(event.tag, event.address) + " lies on a live block: " + block_text(other.tag, other.address));
  by_address_.take(place.block.address, place.block);
}

std::vector<std::string> differences(const cmt::Totals& stated, const cmt::Totals& counted) {
  // The reader replaces events of unknown kinds, so the counts by kind may differ if there are any.
  bool has_unknown_kind = false;
  for (std::size_t kind = 0; kind < cmt::kind_limit; ++kind) {
    has_unknown_kind |= stated.by_kind[kind] != 0 && !is_known(static_cast<cmt::Kind>(kind));
  }
  const Figures states = figures_of(stated, !has_unknown_kind), counts = figures_of(counted, !has_unknown_kind);
  assert(states.size() == counts.size());
  std::vector<std::string> all;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].second == counts[i].second) continue;
    all.push_back("totals: " + std::string(states[i].first) + " is " + std::to_string(states[i].second) +
                  ", the events say " + std::to_string(counts[i].second));
  }
  return all;
}

}  // namespace cmt::trace2cmt
