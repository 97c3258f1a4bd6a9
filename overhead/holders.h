#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/log_linear.h"
#include "toolkit/output/fields.h"

namespace cmt::overhead {

/// One class a doubling: 0, 1, 2-3, 4-7, …
using Doublings = heap::LogLinear<0>;

/// The kinds of events as classes.
struct KindNames {
  static constexpr std::size_t count = kind_limit;
  static std::string_view low(std::size_t index) { return name(static_cast<Kind>(index)); }
};

/// What the blocks of one group hold. A page that several blocks are on is shared evenly among them.
struct Holding {
  std::uint64_t blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t unused_bytes = 0;
  std::uint64_t sole_bytes = 0;
  bool operator==(const Holding&) const = default;
};

template <class Visitor>
void describe(Visitor& field, const Holding& holding) {
  field("blocks", holding.blocks, "live blocks of the group");
  field("live_bytes", holding.live_bytes, "bytes asked for by them");
  field("page_bytes", holding.page_bytes, "their share of the pages that they are on");
  field("unused_bytes", holding.unused_bytes, "of that share: bytes that no block asked for");
  field("sole_bytes", holding.sole_bytes, "pages that no other block is on: free if the group were not there");
}

/// The live blocks that hold the pages at one moment, grouped in three ways. A further way, as by call stack, is
/// another member here and in HolderWalk::Groups.
struct Holders {
  std::uint64_t event = 0;
  std::uint64_t pages = 0;
  std::uint64_t live_bytes = 0;
  std::array<Holding, heap::SizeClasses::count> by_size{};
  std::array<Holding, Doublings::count> by_age{};
  std::array<Holding, kind_limit> by_kind{};
};

template <class Visitor>
void describe(Visitor& field, const Holders& holders) {
  field("event", holders.event, "the sample's event");
  field("pages", holders.pages, "pages that live blocks are on");
  field("live_bytes", holders.live_bytes, "live bytes");
  field("by_size", output::by_class<heap::SizeClasses>(holders.by_size),
        "by size: [size_bytes_min, blocks, live_bytes, page_bytes, unused_bytes, sole_bytes]; a page is shared evenly "
        "among its blocks, and sole_bytes are pages that no block of another group is on");
  field("by_age", output::by_class<Doublings>(holders.by_age),
        "by the bytes allocated since the block was made: [age_bytes_min, blocks, ...]");
  field("by_kind", output::by_class<KindNames>(holders.by_kind),
        "by the call that made the block: [kind, blocks, ...]");
}

/// Finds the holders in a walk over all live blocks. Costs some 15 ns a block.
class HolderWalk {
 public:
  /// `allocated_bytes`: in all, the clock of ages.
  HolderWalk(const heap::AddressIndex& live, int page_shift, std::uint64_t allocated_bytes);

  const Holders& holders() const { return holders_; }

 private:
  /// The indexes of a block's groups.
  struct Groups {
    std::size_t size = 0, age = 0, kind = 0;
  };

  void visit(const heap::PlacedBlock& block);
  void close_page();
  template <class Add>
  void for_each_group(const Groups& groups, Add add);

  int page_shift_;
  std::uint64_t allocated_bytes_;
  Holders holders_;
  std::uint64_t page_ = ~std::uint64_t{0};
  std::uint64_t used_bytes_ = 0;  // of page_
  std::vector<Groups> on_page_;
};

}  // namespace cmt::overhead
