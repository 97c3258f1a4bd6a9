#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/trace/ledger.h"

namespace trace2cmt {

/// The invariants of a trace, whatever form it has (format-spec/text.md, "What a line means"): tags rise, a block is
/// ended once and given where it was made, no byte is of two live blocks, time does not go back. Memory: some 130 bytes
/// a live block.
class EventChecks {
 public:
  /// `fault` gets what is wrong with an event.
  explicit EventChecks(std::function<void(const std::string&)> fault) : fault_(std::move(fault)) {}

  void take(const cmt::Event& event);

  const cmt::Totals& totals() const { return ledger_.totals(); }
  const cmt::format::LiveBlocks& live() const { return ledger_.live(); }

  /// Of the last event that has one; 0: none.
  std::uint64_t last_time_ns() const { return last_time_ns_; }

 private:
  void check_time(const cmt::Event& event);
  void check_given(const cmt::Event& event, const cmt::format::LiveBlock& old);
  void check_place(const cmt::Event& event);

  std::function<void(const std::string&)> fault_;
  cmt::Ledger ledger_;
  cmt::heap::AddressIndex places_;
  std::uint64_t last_time_ns_ = 0;
};

/// Each figure of stated totals that is not what the events say: "totals: peak_live_bytes is 8, the events say 16".
std::vector<std::string> differences(const cmt::Totals& stated, const cmt::Totals& counted);

}  // namespace trace2cmt
