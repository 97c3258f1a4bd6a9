// Mends the events of texts and logs, which may contradict each other, so that all later code may rely on consistent
// events.
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

/// Makes the events of a text or a log consistent. It gives tags to events that have only addresses, and repairs lost
/// events and wrong orders. The output passes `trace2cmt --verify`, whatever the input is. Every input of lines passes
/// here, whatever program wrote it.
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
/// and an allocation after the call, but a realloc's release only together with its allocation. Logs of several
/// processors are merged, too. So a race is short: the address is given back within `race_events` and `race_ns`.
///
/// The mender moves the allocation after the first event that gives the address back, in two cases:
///
/// - Within `window` events, the address is given back as often as it is handed out, and not by one thread only.
///
/// - The address is given back once, by another thread than the allocation's, and is not handed out again.
///
/// Else the free was lost, and the mender inserts one before the allocation. In a trace that has tags, a late free
/// names its block, so the mender drops that free.
///
/// An event without a defect costs one call of the index of addresses, and a live block the index's memory. Events are
/// held only while an allocation waits.
class Mender {
 public:
  /// How late the free of an order race may come, in events and in time.
  static constexpr std::size_t race_events = 128;
  static constexpr std::uint64_t race_ns = 1'000'000;
  /// How many events are searched to distinguish a race from a lost free.
  static constexpr std::size_t window = 1024;
  /// How often an allocation is moved at most. Two reallocs that claim each other's block would wait for ever.
  static constexpr int moves_max = 8;

  /// The log identifies blocks by small numbers instead of addresses. The mender distinguishes blocks by these numbers,
  /// and leaves them out of the events. To be called before the first event.
  void leave_out_addresses() { has_ids_only_ = true; }

  /// An event with the line that it came from, and the live block that it was given.
  struct Item {
    Event event;
    LiveBlock given{};    ///< tag 0: none is known
    std::string label{};  ///< the memory of the event's label
    std::uint64_t line = 0;
    bool is_own = true;       ///< the line has the event: no repair has inserted it
    bool is_dropped = false;  ///< only the repair is reported
    std::optional<Repair> repair{};
    int moves = 0;
  };

  /// Mends the next event of the log. If mend() returns true, the event has its tags and is the next one of the trace.
  /// `given` is then the live block that the event was given, or a blank one. If mend() returns false, take_mended()
  /// returns the next events.
  bool mend(Event& event, LiveBlock& given, std::uint64_t line);

  /// Mends the first of some events, and returns how many. Stops at an event for which mend() would return false, and
  /// at a later event that has a stack.
  std::size_t mend_in_place(std::span<Event> events, std::span<LiveBlock> given);

  /// Ends the log: an allocation that waits is settled.
  void finish() { settle_queue(true); }

  /// Returns events and repairs since the last call, in order.
  std::vector<Item> take_mended();

  /// Whether the mender knows tag, address and size of each live block. False if addresses are left out.
  bool knows_blocks() const { return !has_ids_only_; }
  /// The live blocks after all events that were mended, in no order.
  std::vector<LiveBlock> list_live_blocks() const;

  /// The text by which messages describe a repair.
  static std::string_view describe(Repair repair);

 private:
  enum class Outcome { applied, no_block, occupied, other_address, contradiction };

  /// The evidence about a waiting allocation, from the events after it.
  struct Search {
    std::uint64_t address = 0;              ///< of the live block that it overlaps
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
  std::optional<BlockTable<LiveBlock>> by_tag_;  // the live blocks; from the first event on that needs them
  std::uint64_t blocker_ = 0;  // address of the live block that apply() found at the place of a new one
  Tag newest_ = 0;
  Tag first_tag_ = unknown;  // of the first allocation
  std::uint64_t last_time_ns_ = 0;
  std::deque<Item> queue_;  // the first is an allocation that waits
  Search search_;
  std::vector<Item> mended_;
};

}  // namespace cmt::heap
