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

/// Names blocks that a log gives by address alone: an allocation gets the next tag, a free the tag of the block that
/// lives at its address. Costs one hash table operation a block, and 30 to 38 bytes a live block (70
/// in the moment in which the table grows).
///
/// A trace has tags or has none: the first allocation decides. Where it has, blocks without are not known.
class Tagger {
 public:
  /// Whether an event could be named. If not, it and what is known stay as they were.
  enum class Outcome {
    named,
    no_block,  ///< it gives back an address where no block lives
    occupied   ///< it makes a block at an address where one lives
  };

  /// Fills in the tags.
  Outcome name(Event& event);

  /// The free that ends the block at a live address, with the time and thread of `before`, which it makes room for.
  Event end(std::uint64_t address, const Event& before);

  /// Calls `visit` with address, tag and size of every block that got its tag here.
  template <class Visit>
  void for_each(Visit visit) const {
    live_.for_each([&](const Block& block) { visit(block.tag, block.name, block.size); });
  }

 private:
  enum class Mode { undecided, tagged, untagged };
  /// What lives at an address. The table knows its blocks by a member `tag`: here that is the address.
  struct Block {
    std::uint64_t tag = 0;
    Tag name = 0;
    std::uint64_t size = 0;
  };

  Outcome name_untagged(Event& event);

  Mode mode_ = Mode::undecided;
  Tag next_tag_ = 1;
  ScatteredBlocks<Block> live_;
};

/// Names the blocks of a log, and mends what the log lost or confused: the one place where any input's events are put
/// right, whatever wrote them.
///
/// - A free of an address where no block lives ends the block that reaches over that address, and begins its head anew
///   (a misfree); where there is none, it is dropped.
/// - A realloc of such an address is taken as an allocation.
/// - An allocation at an address where a block lives waits: threads log a free before, and an allocation after it is
///   done, but a realloc's release only with its allocation, and logs of several processors are merged. If within the
///   next `window` events the address is given back as often as it is handed out, or once and by another thread than
///   the one that waits, the allocation is moved behind the first of these. If not, then what comes gives back the new
///   blocks, the free was lost, and the old block is ended first.
///
/// An event that nothing is wrong with costs what the tagger costs; only while an allocation waits are events held,
/// and only from the first misfree on are addresses indexed.
class Mender {
 public:
  /// Events that an allocation waits for.
  static constexpr std::size_t window = 1024;
  /// Times that it is moved: two reallocs that claim each other's block would wait for ever.
  static constexpr int moves_max = 8;

  /// A log gives blocks by names that are no addresses (small numbers): they tell the blocks apart, and are then left
  /// out. To be called before the first event.
  void leave_out_addresses() { names_only_ = true; }

  /// An event with the line that it came from; or what was mended in that line, or both.
  struct Mended {
    std::optional<Event> event;
    std::string label;  ///< what the event's label points to
    std::uint64_t line = 0;
    bool is_own = true;  ///< the event is the line's, not one put in
    std::optional<Repair> repair;
  };

  /// Takes the next event of the log. True: it is named, and comes next. False: take_mended() says what comes next.
  bool add(Event& event, std::uint64_t line);

  /// Nothing follows: what waits does not wait any longer.
  void finish();

  /// What has come since the last call, in order.
  std::vector<Mended> take_mended();

  /// What a repair is called in a message.
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
    std::size_t seen = 0;                 ///< events of the queue looked at, the allocation included; 0: none waits
    std::optional<std::size_t> released;  ///< the first that gives its address back
    bool is_own = false;                  ///< that one is of the thread that waits
    bool is_handed_out_again = false;
    std::size_t blocks = 2;  ///< handed out there and not given back: the one in the way, the one that waits, …
    Verdict verdict = Verdict::open;
  };

  static Held hold(const Event& event, std::uint64_t line) { return {event, std::string(event.label), line}; }
  static void strip(Event& event);
  void settle_queue(bool at_end);
  bool settle(Held& held);
  void free_unmatched(const Held& held);
  void look_at(const Event& event);
  void resolve();
  void emit_end(const Held& held, std::optional<Repair> repair);
  void emit(const Held& held, std::optional<Repair> repair, bool is_own = true);
  std::optional<PlacedBlock> containing(std::uint64_t address);
  void note(const Event& event);

  bool names_only_ = false;
  bool has_threads_ = false;
  Tagger tagger_;
  std::unique_ptr<AddressIndex> index_;
  std::deque<Held> queue_;  // the first is an allocation that waits
  Search search_;
  std::vector<Mended> mended_;
};

}  // namespace cmt::heap
