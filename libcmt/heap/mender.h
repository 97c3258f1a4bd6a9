#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/address_index.h"

namespace cmt::heap {

/// Makes the events of a text or a log consistent: gives tags where it has addresses only, and repairs what it lost or
/// put in the wrong order. What comes out passes `trace2cmt --verify`, whatever went in. Every input of lines passes
/// here, whatever wrote it.
///
/// | the input | what is made of it |
/// |---|---|
/// | frees an address inside a block | the block ends, and its part below the address becomes a new block |
/// | frees any other address where no block begins | nothing: the allocation was lost |
/// | reallocs such an address | an allocation |
/// | allocates on a live block | see below |
/// | names a tag that contradicts those before | nothing |
/// | gives a block at another address than its own | the block's own address |
/// | has a time before that of the event before | the same time |
///
/// An allocation on a live block is an order race, or the block's free was lost. A thread logs a free before the call
/// and an allocation after it, but a realloc's release only together with its allocation; and logs of several
/// processors are merged. So a race is short: the address is given back within `race_events` and `race_ns`. The
/// allocation moves behind the first event that gives it back if, within `window` events, the address is given back as
/// often as it is handed out, and not by one thread only; or if it is given back once, not handed out again, and by
/// another thread than the allocation's. Else the free was lost, and one is put in before the allocation. In a trace
/// that has tags, a free that comes late names its block, so it is the one that is dropped.
///
/// An event without a defect costs one call of the index of addresses, and a live block the index's memory. Events are
/// held only while an allocation waits.
class Mender {
 public:
  /// How late the free of an order race may come, in events and in time.
  static constexpr std::size_t race_events = 128;
  static constexpr std::uint64_t race_ns = 1'000'000;
  /// How many events are searched for what tells a race from a lost free.
  static constexpr std::size_t window = 1024;
  /// How often an allocation is moved: two reallocs that claim each other's block would wait for ever.
  static constexpr int moves_max = 8;

  /// The log identifies blocks by small numbers instead of addresses: they tell blocks apart, and are left out of the
  /// events. To be called before the first event.
  void leave_out_addresses() { has_ids_only_ = true; }

  /// An event with the line that it came from, and the live block that it was given.
  struct Item {
    Event event;
    LiveBlock given{};    ///< tag 0: none is known
    std::string label{};  ///< the memory of the event's label
    std::uint64_t line = 0;
    bool is_own = true;       ///< the event stood in the line, and was not put in by a repair
    bool is_dropped = false;  ///< only the repair is to be told
    std::optional<Repair> repair{};
    int moves = 0;
  };

  /// Mends the next event of the log. If it returns true, the event has its tags and is the next of the trace, and
  /// `given` is the live block that it was given, or a blank one. If it returns false, take_mended() returns the events
  /// that come next.
  bool mend(Event& event, LiveBlock& given, std::uint64_t line);

  /// Mends the first of some events, up to one for which mend() would return false, or one behind the first that has a
  /// stack. Returns how many.
  std::size_t mend_in_place(std::span<Event> events, std::span<LiveBlock> given);

  /// Ends the log: an allocation that waits does so no longer.
  void finish() { settle_queue(true); }

  /// Events and repairs since the last call, in order.
  std::vector<Item> take_mended();

  /// Whether it knows of each live block what LiveBlock has: not where addresses are left out.
  bool knows_blocks() const { return !has_ids_only_; }
  /// The live blocks after all events that were mended, in no order.
  std::vector<LiveBlock> list_live_blocks() const;

  /// A repair as messages describe it.
  static std::string_view describe(Repair repair);

 private:
  enum class Outcome { applied, no_block, occupied, other_address, contradiction };

  /// What the events behind a waiting allocation tell about it.
  struct Search {
    std::uint64_t address = 0;              ///< of the live block that it lies on
    std::size_t seen = 0;                   ///< events of the queue examined, the allocation included; 0: none waits
    std::size_t blocks = 0;                 ///< handed out at the address and not given back
    std::optional<std::size_t> released{};  ///< index of the event that gives it back first, and soon
    bool is_own = false;                    ///< that event is of the allocation's thread
    bool is_of_others = false;              ///< another thread gives it back
    bool is_handed_out_again = false;
    bool is_balanced = false;  ///< the address is given back as often as handed out
    bool is_over = false;      ///< no event gives it back soon
  };

  bool apply_plain(Event& event, LiveBlock& given);
  bool end_plain(Event& event, LiveBlock& given);
  bool make_plain(Event& event);
  void prefetch(std::span<const Event> events);
  Outcome apply(Event& event, LiveBlock& given);
  Outcome apply_to_named(Event& event, LiveBlock& given);
  Outcome find_given(const Event& event, std::optional<PlacedBlock>& given);
  bool insert_made(const Event& event, Tag tag);
  void insert_again(const PlacedBlock& block);
  BlockTable<LiveBlock>& by_tag();
  void settle_queue(bool at_end);
  bool settle(Item& item);
  void free_unmatched(const Item& item);
  void end_blockers(Item& item);
  void examine(const Event& event);
  void resolve_wait();
  void append(Item item);
  std::optional<PlacedBlock> block_around(std::uint64_t address);

  bool has_ids_only_ = false;
  TagIndex live_;
  std::optional<BlockTable<LiveBlock>> by_tag_;  // the live blocks, from the first on that needs it
  std::uint64_t blocker_ = 0;                    // address of the block that apply() found in the way
  Tag newest_ = 0;
  Tag first_tag_ = unknown;  // of the first allocation
  std::uint64_t last_time_ns_ = 0;
  std::deque<Item> queue_;  // the first is an allocation that waits
  Search search_;
  std::vector<Item> mended_;
};

}  // namespace cmt::heap
