// The core stream of a .cmt, encoder and decoder: kinds, sizes, tags and threads. core_encoder.cpp explains how.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/block_event.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/forms.h"

namespace cmt::format {

/// The state at the begin of a block of the core stream. The block's header states it, so that the block decodes alone.
struct CoreState {
  Tag next_tag = 1;          ///< of the next allocation
  Tag named_tag = 0;         ///< of the block that an event was given last
  std::uint32_t thread = 0;  ///< of the next event

  bool operator==(const CoreState&) const = default;
};

/// The last run of touched pages in a block of the core stream. The next run is mostly like it.
struct LastRun {
  Kind kind = Kind::touch;
  Tag tag = 0;  ///< 0: no run yet
  std::uint64_t count = 0, alignment = 4096;
  std::uint64_t end = 0;

  /// The offset at which the next run of a block probably begins.
  std::uint64_t offset_in(Tag block) const { return block == tag ? end : 0; }

  bool is_continued_by(const Event& run) const {
    return run.kind == kind && run.count == count && run.alignment == alignment && run.size == offset_in(run.old_tag);
  }

  void become(const Event& run) {
    *this = {run.kind, run.old_tag, run.count, run.alignment, run.size + run.count * run.alignment};
  }
};

/// The blocks of pools in a block of the core stream. It begins without a pool.
struct PoolState {
  std::uint64_t next = 1;   ///< the number of the block that a pool makes next
  std::uint64_t named = 0;  ///< the number of the block that was ended last
  std::size_t pool = 0;     ///< of the last event: its place among the block's pools, counted from 1
};

/// Collects the events of one block, and encodes them.
class CoreEncoder {
 public:
  /// Starts a block.
  explicit CoreEncoder(CoreState start = {}) { reset(start); }

  void reset(CoreState start);

  /// Appends an event. Its tag, if it has one, is not below the state's next_tag.
  void add(const Event& event) {
    ++events_;
    if (event.thread == state_.thread || switch_thread(event.thread)) {
      if (event.kind == Kind::malloc && event.tag == state_.next_tag && put_short(0, event.size)) {
        ++state_.next_tag;
        return;
      }
      if (event.kind == Kind::free && event.old_tag != 0) {
        const std::uint64_t distance = state_.next_tag - event.old_tag;
        const std::uint64_t delta = zigzag(event.old_tag - state_.named_tag);
        const bool by_delta = is_delta_shorter(delta, distance);
        if (put_short(by_delta ? free_by_delta : free_by_distance, by_delta ? delta : distance)) {
          state_.named_tag = event.old_tag;
          return;
        }
      }
    }
    add_other(event);
  }

  /// Whether a block that exists is written as a difference from the block named last. Its distance from the next tag
  /// is 0 if its own allocation was never seen; a distance of 0 means no block, so it cannot be written.
  static bool is_delta_shorter(std::uint64_t delta, std::uint64_t distance) { return delta <= distance - 1; }

  /// Appends events in short form, and returns how many. Stops at the first event that needs more than one number of a
  /// form in the table. Nearly all events of a recorder pass this loop.
  std::size_t add_short(std::span<const BlockEvent> events);

  /// Raises the tag of the next allocation. Requires that `tag` is not below the state's next_tag.
  void skip_to(Tag tag) {
    if (tag != state_.next_tag) put_skip(tag);
  }

  std::uint32_t events() const { return events_; }

  /// How many events the block has room for, whatever they are: each needs at most three forms. 0: the block has to
  /// end.
  std::size_t room() const {
    if (labels_.size() > label_bytes_limit) return 0;
    return std::min((forms_limit - spare_forms_ - forms_.size()) / 3, pools_limit - pools_.size());
  }
  /// Leaves room for the forms of one more event, so that the events can be encoded again with another start state. The
  /// first event that is given a block may need another form then. To be called before the first event.
  void leave_spare_forms() { spare_forms_ = 3; }
  bool full() const { return room() == 0; }

  const CoreState& state() const { return state_; }

  /// The core stream, not compressed.
  std::string finish() const;
  /// The names of the pools of this block's events, for the block's header.
  const std::vector<std::string>& pools() const { return pools_; }

 private:
  static constexpr std::size_t label_bytes_limit = 1 << 20;

  static constexpr unsigned free_by_distance = Form{1}.wire(), free_by_delta = Form{1, true}.wire(),
                            thread_switch = Form{Form::thread_switch}.wire();
  /// A first operand of more bits does not fit 64 bits together with a code of 7.
  static constexpr unsigned shared_bits = 64 - code_bits_limit;

  /// Appends an item if its form is in the table and its operand shares a number with the code. Returns whether it did.
  bool put_short(unsigned wire, std::uint64_t first) {
    const unsigned number = form_numbers_[wire];
    if (number == 0 || items_end_ == items_limit_ || first >> shared_bits != 0) return false;
    put_item(number - 1, first);
    return true;
  }

  bool switch_thread(std::uint32_t thread) {
    if (!put_short(thread_switch, thread)) return false;
    state_.thread = thread;
    return true;
  }

  void put_item(unsigned number, std::uint64_t first) {
    assert(number < widths_.size() && items_end_ != items_limit_);
    *items_end_++ = first << code_bits_limit | number;
    ++widths_[number][static_cast<unsigned>(std::bit_width(first))];
  }

  void add_other(const Event& event);
  void put_run(const Event& event);
  void put_pool_event(const Event& event);
  std::size_t pool_of(std::string_view name);
  void put_given(Form form, Tag tag);
  void put(Form form, std::uint64_t first);
  void make_room();
  void put_skip(Tag tag);
  void put_switches(const Event& event);
  void put_rest(const Event& event, bool size_follows);
  std::uint8_t number_of(Form form);

  CoreState state_;
  LastRun last_run_;
  PoolState pool_state_;
  std::vector<std::string> pools_;
  std::size_t spare_forms_ = 0;
  std::uint32_t events_ = 0;
  // Each item has the form's number in its low 7 bits and, unless the form is wide, the first operand above them.
  std::unique_ptr<std::uint64_t[]> items_;
  std::uint64_t* items_end_ = nullptr;
  std::uint64_t* items_limit_ = nullptr;
  std::vector<std::uint64_t> operands_;  // all other operands, one after the other
  std::string labels_;
  std::vector<Form> forms_;
  std::vector<BitHistogram> widths_;  // by form: of the operands that share a number with the code
  std::array<std::uint8_t, wire_forms_limit> form_numbers_{};  // by wire value; 0: not yet met, else the number + 1
};

/// Decodes one block. Throws WireError, with the offset in the stream.
class CoreDecoder {
 public:
  /// `bytes` and the names of the block's pools have to outlive the decoder: labels point into them. `sampled`: the
  /// trace is.
  CoreDecoder(std::string_view bytes, CoreState start, std::uint32_t events, std::span<const std::string> pools = {},
              bool sampled = false);

  /// Fills in the next events of the block and returns how many: all of `events`, except at the end of the block.
  /// Fields that are not in the core stream keep their values. Requires that `events` is the same span in each call,
  /// and has default values in the first.
  std::size_t next(std::span<Event> events);

  const CoreState& state() const { return state_; }

  bool is_done() const { return left_ == 0; }
  /// Whether the last call of next() may have given an event a label.
  bool has_labels() const { return labelled_; }

  /// Events so far of kinds that this version does not know.
  std::uint64_t unknown_kinds() const { return unknown_kinds_; }

 private:
  /// How to decode an item. A plain item (not `other`) is one number, or two for a realloc with its size.
  enum class Action : std::uint8_t { other, make, end, move };
  /// The rarer plain items, of two numbers: an array with the number of its elements, an end with the block's size.
  /// They are no actions: a switch with so many cases becomes a jump through a table, which is slower for all.
  enum class Pair : std::uint8_t { none, make_array, end_sized };

  /// An entry of the table that is indexed by the low 7 bits of an item's first number.
  struct Code {
    std::uint8_t length = 0;  // 0: no form has this code
    Action action = Action::other;
    Pair pair = Pair::none;  // none unless the action is `other`
    Kind kind = Kind::malloc;
    bool shares = false;         // the first operand is above the code
    std::uint64_t by_delta = 0;  // all bits, or none
    Form form;
  };

  static bool is_plain(const Form& form);
  static Action action_of(const Form& form);
  static Pair pair_of(const Form& form);
  void decode_other(Event& event, std::uint64_t first);
  void decode_operands(Event& event, const Code& code, std::uint64_t first);
  Tag old_tag(const Form& form, std::uint64_t operand) const;
  void complete_run(Event& event, bool is_next);
  void complete_pool_event(Event& event, bool has_pool, std::uint64_t given);
  bool switch_state(const Code& code, std::uint64_t first);

  Cursor cursor_;
  CoreState state_;
  LastRun last_run_;
  PoolState pool_state_;
  std::span<const std::string> pools_;
  std::uint32_t left_;
  std::uint64_t unknown_kinds_ = 0;
  bool labelled_ = false;  // some of the last events were
  std::array<Code, forms_limit> codes_{};
};

}  // namespace cmt::format
