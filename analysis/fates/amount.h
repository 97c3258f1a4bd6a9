/// Small parts that all counts of fates share: amounts, short lifetimes, units, and figures that may be unknown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/live_totals.h"
#include "libcmt/heap/log_linear.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {

using heap::AgeClasses;
using heap::SizeClasses;

/// Blocks and the bytes that were asked for.
struct Amount : heap::LiveTotals {};

template <class Visitor, output::DescribedAs<Amount> A>
void describe(Visitor& field, A& amount) {
  field("blocks", amount.blocks, "blocks");
  field("bytes", amount.bytes, "bytes asked for");
}

/// The longest lifetime that is short, in the clock's unit. For bytes it is the bound of Barrett and Zorn (1993).
constexpr std::uint64_t short_lived_max(heap::Clock::Unit clock) {
  constexpr std::uint64_t events = 256, ns = 1'000'000, bytes = 32'768;
  return clock == heap::Clock::Unit::events ? events : clock == heap::Clock::Unit::time ? ns : bytes;
}

/// "events", "ns" or "bytes".
inline std::string_view unit_name(heap::Clock::Unit clock) {
  return clock == heap::Clock::Unit::time ? "ns" : heap::Clock::name(clock);
}

/// Adds two figures that may be unknown. The sum is unknown only if both are.
inline void add_known(std::uint64_t& sum, std::uint64_t more) {
  if (more != unknown) sum = sum == unknown ? more : sum + more;
}

/// Counts a realloc whose addresses are known: whether it moved the block, and what that copied at most.
inline void add_move(const Event& event, std::uint64_t old_bytes, std::uint64_t& moved, std::uint64_t& moved_bytes) {
  if (event.address == 0 || event.old_address == 0) return;
  const bool is_moved = event.address != event.old_address;
  add_known(moved, is_moved);
  add_known(moved_bytes, is_moved ? std::min(old_bytes, event.bytes()) : 0);
}

}  // namespace cmt::analysis
