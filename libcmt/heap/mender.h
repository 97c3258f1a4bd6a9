#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/address_index.h"

namespace cmt::heap {

/// Gives tags to the blocks of a log that knows addresses only: an allocation gets the next tag, a free the tag of the
/// block that lives at its address. Costs one hash table operation an event, and 30 to 38 bytes a live block (70 while
/// the table grows).
///
/// The first allocation decides whether a trace has tags. If it has, blocks without a tag are not known.
class Tagger {
 public:
  /// Whether an event got its tags. If not, neither the event nor the table has changed.
  enum class Outcome {
    tagged,
    no_block,  ///< the event gives back an address where no block lives
    occupied   ///< the event makes a block at an address where one lives
  };

  /// Fills in the tags of an event.
  Outcome assign_tags(Event& event);

  /// Makes the free that ends the block at a live address, with time and thread of the event `before` which it stands.
  Event make_free(std::uint64_t address, const Event& before);

  /// Calls `visit` with address, tag and size of every live block that got its tag here.
  template <class Visit>
  void for_each(Visit visit) const {
    live_.for_each([&](const Block& block) { visit(block.address, block.tag, block.size); });
  }

 private:
  enum class Mode { undecided, tagged, untagged };
  struct Block {
    std::uint64_t address = 0;
    Tag tag = 0;
    std::uint64_t size = 0;
  };

  Outcome assign_by_address(Event& event);

  Mode mode_ = Mode::undecided;
  Tag next_tag_ = 1;
  ScatteredBlocks<Block, &Block::address> live_;
};

/// Gives tags to the events of a log, and repairs what the log lost or put in the wrong order. Every input without tags
/// passes here, whatever wrote it.
///
/// - A free of an address inside a block is a misfree: the block is ended, and its part below the address becomes a new
///   block. A free of any other address where no block begins is dropped.
/// - A realloc of an address where no block begins becomes an allocation.
/// - An allocation at an address where a block lives waits, because logs have order races. A thread logs a free before
///   the call and an allocation after it, but a realloc's release only together with its allocation; and logs of
///   several processors are merged. The allocation moves behind the free if one is found within the next `window`
///   events: the address is given back there as often as it is handed out, or it is given back once, not handed out
///   again, and by another thread than the allocation's. Otherwise the free was lost, and a free is put in before the
///   allocation.
///
/// An event without a defect costs one call of the tagger. Events are held only while an allocation waits, and
/// addresses are indexed only from the first misfree on.
class Mender {
 public:
  /// Events that an allocation waits for its free.
  static constexpr std::size_t window = 1024;
  /// How often an allocation is moved: two reallocs that claim each other's block would wait for ever.
  static constexpr int moves_max = 8;

  /// The log identifies blocks by small numbers instead of addresses: they tell blocks apart, and are left out of the
  /// events. To be called before the first event.
  void leave_out_addresses() { has_ids_only_ = true; }

  /// An event, a repair, or both, with the line that they came from.
  struct Mended {
    std::optional<Event> event;
    std::string label;  ///< the memory of the event's label
    std::uint64_t line = 0;
    bool is_own = true;  ///< the event stood in the line, and was not put in by a repair
    std::optional<Repair> repair;
  };

  /// Mends the next event of the log. If it returns true, the event has its tags and is the next of the trace. If it
  /// returns false, take_mended() returns the events that come next.
  bool mend(Event& event, std::uint64_t line);

  /// Ends the log: an allocation that waits does so no longer.
  void finish();

  /// Events and repairs since the last call, in order.
  std::vector<Mended> take_mended();

  /// A repair as messages describe it.
  static std::string_view describe(Repair repair);

 private:
  struct Held {
    Event event;
    std::string label;
    std::uint64_t line = 0;
    int moves = 0;
  };

  enum class Verdict { open, swap };

  /// What the events behind a waiting allocation tell about it.
  struct Search {
    std::size_t seen = 0;                 ///< events of the queue examined, the allocation included; 0: none waits
    std::optional<std::size_t> released;  ///< index of the first event that gives the address back
    bool is_own = false;                  ///< that event is of the allocation's thread
    bool is_handed_out_again = false;
    std::size_t blocks = 2;  ///< handed out at the address and not given back: at first the live and the waiting one
    Verdict verdict = Verdict::open;
  };

  static Held copy_of(const Event& event, std::uint64_t line) { return {event, std::string(event.label), line}; }
  static void remove_addresses(Event& event);
  void settle_queue(bool at_end);
  bool settle(Held& held);
  void free_unmatched(const Held& held);
  void examine(const Event& event);
  void resolve_wait();
  void append_free(const Held& before, std::optional<Repair> repair);
  void append(const Held& held, std::optional<Repair> repair, bool is_own = true);
  std::optional<PlacedBlock> block_around(std::uint64_t address);
  void update_index(const Event& event);

  bool has_ids_only_ = false;
  bool has_threads_ = false;
  Tagger tagger_;
  std::unique_ptr<AddressIndex> index_;
  std::deque<Held> queue_;  // the first is an allocation that waits
  Search search_;
  std::vector<Mended> mended_;
};

}  // namespace cmt::heap
