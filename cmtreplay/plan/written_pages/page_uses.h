/// Learns from a whole trace how far a program writes to blocks that are alike.
#pragma once

#include <cstdint>
#include <optional>

#include <tsl/robin_map.h>

#include "cmt/event.h"

namespace cmt::replay {

/// The bytes of an event's pages, which may reach beyond the block.
std::uint64_t bytes_of_pages(const Event& event);

/// Which share of their pages a program writes, over blocks of one call and size.
///
/// Nobody knows whether a program wrote to `resident` pages: they were in memory before, or the tracer had no time to
/// ask for them. But it knows which of the other pages were written until the block's end. Programs use blocks of one
/// call and size alike. Example: php takes 256 KiB for each request and writes one page of it. The trace shows that for
/// the first such block only, since later ones are in memory that other blocks have used.
class PageUses {
 public:
  /// The pages of blocks whose use is known.
  struct Use {
    std::uint64_t blocks = 0, bytes = 0, written = 0;
    double share() const { return static_cast<double>(written) / static_cast<double>(bytes); }
  };

  /// `bytes`: the trace has the pages of blocks of at least this size. 0: of none.
  explicit PageUses(std::uint64_t touched_min = 0) : touched_min_(touched_min) {}

  std::uint64_t touched_min() const { return touched_min_; }
  bool is_large(std::uint64_t size) const { return touched_min_ != 0 && size >= touched_min_; }

  /// To be called with each event of the trace, and then finish().
  void learn(const Event& event);
  void finish();

  /// Returns the use of blocks of this call and size. If none is known, of those in the same class of sizes, four for
  /// each power of two. nullopt: none of these either.
  std::optional<Use> of(Kind kind, std::uint64_t size) const;

 private:
  struct Block {
    std::uint64_t size = 0, resident = 0, touched = 0;
    Kind kind{};
    std::optional<Kind> begin{};  ///< of the run at the block's begin, whose first page counts whole
    bool is_late = false;         ///< resident pages were reported later than at its allocation: its end is not known

    void shorten_begin(const Event& later);
  };

  void end_block(Tag tag);
  void add(const Block& block);

  std::uint64_t touched_min_ = 0;
  Tag new_block_ = 0;                         ///< the block that the last events made, with its resident pages
  tsl::robin_map<Tag, Block> blocks_;         ///< the live ones of at least touched_min bytes
  tsl::robin_map<std::uint64_t, Use> exact_;  ///< by call and size
  tsl::robin_map<std::uint64_t, Use> about_;  ///< by call and class of sizes
};

}  // namespace cmt::replay
