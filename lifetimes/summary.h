#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/log_linear.h"

/// What is known of the lifetimes in one trace or in many: plain numbers that are added, so that the summary of many
/// traces is made of their summaries, wherever those were made. Only a peak cannot be added: each input keeps its own,
/// and the greatest and the sum of all bound what the inputs had together.
namespace cmt::lifetimes {

using heap::AgeClasses;
using heap::SizeClasses;

/// Blocks and what they asked for.
struct Amount {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t size) { ++blocks, bytes += size; }
  void remove(std::uint64_t size) { --blocks, bytes -= size; }
  void add(const Amount& other) { blocks += other.blocks, bytes += other.bytes; }
  bool operator==(const Amount&) const = default;
};

/// The most bytes that were live, the first moment of it, and of which sizes they were.
struct Peak {
  Amount live;
  std::uint64_t event = 0;          ///< counted from 1
  std::uint64_t time_ns = unknown;  ///< since the start of the recording
  std::array<Amount, SizeClasses::count> sizes{};
};

struct Input {
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  Peak peak;
};

/// The blocks of one class of sizes.
struct SizeSummary {
  Amount allocated;
  Amount leaked;                   ///< alive at the end
  std::uint64_t ended = 0;         ///< blocks with a lifetime
  std::uint64_t temporary = 0;     ///< of these: freed by the next event of the thread that made it
  std::uint64_t short_lived = 0;   ///< of these: with a lifetime up to short_lived_max()
  std::uint64_t other_thread = 0;  ///< of these: ended by another thread than the one that made it
  std::uint64_t lifetime_max = 0;
  bool operator==(const SizeSummary&) const = default;
};

/// A lifetime up to this counts as short, in the clock's unit. For bytes it is the bound of Barrett and Zorn (1993).
std::uint64_t short_lived_max(heap::Clock::Unit clock);

struct Summary {
  explicit Summary(heap::Clock::Unit unit) : clock(unit), ages(SizeClasses::count * AgeClasses::count) {}

  heap::Clock::Unit clock;
  std::vector<Input> inputs;
  std::array<std::uint64_t, kind_count> by_kind{};
  std::uint64_t failed = 0;        ///< calls that were refused
  std::uint64_t unknown_ends = 0;  ///< of blocks from before the begin
  std::array<SizeSummary, SizeClasses::count> sizes{};
  std::vector<std::uint64_t> ages;  ///< ended blocks by size and lifetime: count_of()

  /// Blocks by how often they were reallocated before they were freed or the trace ended; 0 is not counted.
  std::array<std::uint64_t, AgeClasses::count> chains{};
  std::uint64_t chain_max = 0;

  std::uint64_t& count_of(std::size_t size_class, std::size_t age_class) {
    return ages[size_class * AgeClasses::count + age_class];
  }
  std::uint64_t count_of(std::size_t size_class, std::size_t age_class) const {
    return ages[size_class * AgeClasses::count + age_class];
  }

  /// The sum over all sizes.
  SizeSummary total() const;

  /// The lifetime that `share` of a class's blocks do not exceed, rounded up to its class's end; nothing where none
  /// ended.
  std::optional<std::uint64_t> quantile(std::size_t size_class, double share) const;

  /// The same over all sizes.
  std::optional<std::uint64_t> quantile(double share) const;

  /// Adds another summary by the same clock. Throws std::invalid_argument for one by another.
  void merge(const Summary& other);
};

}  // namespace cmt::lifetimes
