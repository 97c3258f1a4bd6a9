/// trace2cmt --verify: checks what a trace promises, and reports each fault with its place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/trace/writer/ledger.h"
#include "trace2cmt/inspect/trace_file.h"

namespace cmt::trace2cmt {

/// Is called with each fault and its place. `count` includes other faults of its kind that are not reported.
using ReportFault = std::function<void(const std::string& place, const std::string& what, std::uint64_t count)>;

struct Verdict {
  std::uint64_t faults = 0;
  std::string checked;  ///< names the checks, for the message if there is no fault
};

/// Checks all that a trace promises, with `jobs` threads: the invariants of its events. In a .cmt, also checks
/// every checksum, each block by itself and against the blocks next to it, index, totals and tail. Throws
/// std::system_error, and FormatError for a file that is no trace.
Verdict verify(const TraceFile& file, unsigned jobs, const ReportFault& report);

/// The message that a trace has no end after so many whole events.
std::string missing_end(std::uint64_t events);

/// verify() for a .cmt.
Verdict verify_cmt(const TraceFile& file, unsigned jobs, const ReportFault& report);

/// Checks the invariants of the events of every trace (format-spec/text.md, "Meaning of a line"):
///
/// - tags rise;
/// - a block is ended once, and at the address where it was allocated;
/// - live blocks do not overlap;
///
/// - time does not go back, and the sampling interval does not fall;
/// - events of touched pages name each page of a block once.
///
/// Memory: some 50 bytes a live block (15 if the caller knows the blocks), and the memory of TouchedPages.
class EventChecks {
 public:
  using Report = std::function<void(const std::string& what)>;

  explicit EventChecks(Report report) : report_(std::move(report)) {}

  /// The trace is sampled, with this interval at its start. 0: it is not.
  void expect_samples(std::uint64_t interval) { interval_ = interval; }

  void check(const cmt::Event& event);
  /// The same for a caller that knows the live blocks: `given` has the block that each event was given; tag 0 if there
  /// is none. To be used for all events or for none.
  void check(std::span<const cmt::Event> events, std::span<const cmt::LiveBlock> given);

  /// The index in the span of the event that is being checked.
  std::size_t at() const { return at_; }

  const cmt::Totals& totals() const { return ledger_.totals(); }

 private:
  void check(const cmt::Event& event, const cmt::Ledger::Entry& entry);
  void check_time(const cmt::Event& event);
  void check_old_block(const cmt::Event& event, const cmt::format::LiveBlock& old);
  void check_overlap(const cmt::Event& event);
  void check_run(const cmt::Event& event, const cmt::format::LiveBlock& block);
  void check_discard(const cmt::Event& event, const cmt::format::LiveBlock& block);

  Report report_;
  std::size_t at_ = 0;
  cmt::Ledger ledger_;
  cmt::heap::TagIndex by_address_;
  cmt::heap::TouchedPages pages_;
  std::unordered_set<cmt::Tag> touched_;              // blocks that have an event of the kind touch
  std::uint64_t pages_size_min_ = ~std::uint64_t{0};  // least size of the blocks in both; most others are smaller
  std::uint64_t last_time_ns_ = 0;
  std::uint64_t interval_ = 0;
};

/// Each figure in which the totals of a file differ from the events': "totals: peak_live_bytes is 8, the events say
/// 16".
std::vector<std::string> differences(const cmt::Totals& stated, const cmt::Totals& counted);

}  // namespace cmt::trace2cmt
