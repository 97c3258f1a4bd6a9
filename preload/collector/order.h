// Order. Stamps tell nearly all of it; two things have to hold exactly: an address never lives twice, and a free ends
// the block that it was given, not another one at the same address. The rules of recording give:
//
// 1. A free is recorded before the real call, an allocation after it. So what depends on an event is recorded after it,
//    and its record is seen after it, whatever the stamps say; and stamps of such events can be wrong by less than
//    `stamp_slack`, because rdtsc may run early, never late.
// 2. The drainer looks at the clock, H, then at the rings. An event with a stamp below the cut H - slack that it
//    has not seen is one of a thread that was stopped between its look at the clock and its record. Nobody can depend
//    on it yet: the real free has not happened, the new block's address is not known to anyone. It may come late.
//
// So the rings' events are merged by stamp up to the cut, and where the addresses contradict, one waits:
//
// - an allocation of an address that is live waits for the free, which is in another ring, with a stamp a little later;
// - a free of an address that is not live waits for the allocation in the same way;
// - where a realloc has begun and not returned (`in_transit`), its old address may be another thread's already. Then
// the
//   realloc has had its effect, though its return has a later stamp: it is put before; if it is not there yet, what
//   the other thread does with the address waits for it.
//
// Where one waits at stamp s, nobody passes s + 2 slacks: an event that stands behind the waiting one could be
// missing to them. What has waited that long, when everything up to there has been merged, waits for nothing that will
// come: a block that ended by a call that is not ours is ended by a free that is made up (a repair); one that was never
// seen gets a tag of the reserve below the first.
//
// Where two events of the same sort wait for the same address at once, their stamps alone decide, and that is a
// doubt, counted.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/text/parser.h"
#include "libcmt/trace/sink.h"
#include "preload/collector/live_table.h"
#include "preload/collector/ring_events.h"

namespace cmt::collector {

class Order : public BlockKeeper {
 public:
  /// What takes the events, in order, with stamps for times. Returns how many it can take next; the first time one.
  using Sink = std::function<std::size_t(std::span<BookedEvent>)>;

  /// `reserve`: tags for blocks from before the start.
  Order(std::uint64_t reserve, Sink sink) : sink_(std::move(sink)), first_tag_(reserve + 1), next_tag_(reserve + 1) {}

  /// What was read from a ring, by its number.
  void append(std::uint32_t ring, Packed records);
  /// Puts everything in order that has a stamp up to `cut`.
  void merge(std::uint64_t cut);
  /// Everything that is there, at the end: nothing else will come.
  void finish();

  /// An event that no thread recorded, and that is about no block, behind all that was merged.
  void add(const Event& event);

  /// Whether every event that was appended is in the trace.
  bool is_empty() const { return queue_.empty() && blocked_.empty(); }
  /// What could not be known. Doubts are counted as Repair::order_race.
  const Repairs& repairs() const { return repairs_; }
  /// Events that their stamps alone would have put in a wrong place.
  std::uint64_t inversions() const { return inversions_; }
  /// How far a ring's records are in the trace.
  Saved settled(std::uint32_t ring) const;

  /// For a recovery, before all else: what the trace has already, event by event, handed on as it is; where a ring's
  /// records go on.
  void know(const Event& event);
  void resume(std::uint32_t ring, const Saved& saved);

  std::size_t live_blocks() const override { return live_.size(); }
  std::vector<format::LiveBlock> list_live_blocks() const override;

 private:
  void drain_queue(std::uint64_t cut);
  std::uint64_t barrier(std::uint64_t cut) const;
  bool end_realloc(std::uint64_t address);
  LiveTable::Slot* find(std::uint64_t address);
  void take_run(Stream& stream, std::uint64_t bound);
  bool force_oldest(std::uint64_t cut);
  void queue(Stream& stream);
  Stream* dequeue();

  bool take_plain(const Slot& record, std::uint64_t stamp, std::uint32_t thread);
  bool take_plain_realloc(Stream& stream);
  bool take(Stream& stream, bool forced);
  bool take_allocation(Stream& stream, const Recorded& event, bool forced);
  bool take_release(Stream& stream, const Recorded& event, bool forced);
  bool take_given(Stream& stream, const Recorded& event, bool forced);
  bool take_realloc(Stream& stream, const Recorded& event, bool forced);
  void take_given_block(BookedEvent& booked, std::uint64_t old, std::uint64_t address);
  bool make_room(Stream& stream, const Recorded& event, bool forced);
  Tag unseen_tag();
  bool wait_for(Stream& stream, std::uint64_t address);
  void wake(std::uint64_t address) {
    if (!blocked_.empty()) wake_blocked(address);
  }
  void wake_blocked(std::uint64_t address);

  static constexpr std::size_t batch_max = 64;
  BookedEvent& blank(const Stream& stream, const Recorded& event);
  // A label lives no longer than its record.
  void commit(const BookedEvent& booked) {
    if (booked.event.label.size() > text::label_limit) return repairs_.add(Repair::contradiction);
    if (++batched_ == batch_limit_ || !booked.event.label.empty()) hand_over();
  }
  void hand_over();
  format::LiveBlock booked_block(const LiveTable::Slot& slot) const;

  Sink sink_;
  std::array<BookedEvent, batch_max> batch_;  // in order, not handed over
  std::size_t batched_ = 0;
  std::size_t batch_limit_ = 1;
  Tag first_tag_;
  Tag next_tag_;
  Tag next_unseen_ = 1;
  LiveTable live_;
  std::deque<Stream> streams_;  // by ring
  std::vector<Stream*> queue_;  // a heap, the oldest front first
  std::vector<Stream*> blocked_;
  bool woken_ = false;
  Repairs repairs_;
  std::uint64_t inversions_ = 0;
};

}  // namespace cmt::collector
