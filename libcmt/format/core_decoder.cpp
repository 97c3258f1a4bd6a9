// Decodes the core stream: a table of 128 codes says how to decode each item, and nine events in ten need one number.

#include "libcmt/format/core.h"

#include <cassert>
#include <utility>

namespace cmt::format {
namespace {

constexpr std::uint64_t label_limit = 4096;

/// Replaces an unknown kind by a known one that does the same to blocks. The event loses fields that the known kind
/// does not have, and a block that it only named.
void replace_unknown_kind(Event& event, const KindTraits& kind) {
  if (kind.allocates && kind.releases) {
    event.kind = kind.counts ? Kind::reallocarray : Kind::realloc;
  } else if (kind.allocates) {
    event.kind = kind.counts ? Kind::calloc : event.alignment != 0 ? Kind::aligned_alloc : Kind::malloc;
  } else {
    event.kind = kind.releases ? Kind::free : Kind::unknown_kind;
  }
  const KindTraits& now = traits(event.kind);
  if (!now.counts) event.size = event.bytes();
  if (!now.counts) event.count = 1;
  if (!now.sizes) event.size = 0;
  if (!now.aligns) event.alignment = 0;
  if (!now.is_given()) event.old_tag = 0;
}

}  // namespace

CoreDecoder::CoreDecoder(std::string_view bytes, CoreState start, std::uint32_t events,
                         std::span<const std::string> pools, bool sampled)
    : cursor_(bytes), state_(start), pools_(pools), left_(events) {
  const FormTable table = FormTable::take(cursor_, sampled);
  const std::vector<std::uint8_t> codes = canonical_codes(table.lengths);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const Form& form = table.forms[i];
    const unsigned step = 1u << table.lengths[i];
    for (unsigned low = codes[i]; low < forms_limit; low += step) {
      assert(codes_[low].length == 0);  // FormTable::take() has checked that the code is a prefix code
      codes_[low] = {table.lengths[i],
                     action_of(form),
                     pair_of(form),
                     static_cast<Kind>(form.operation),
                     !form.wide && form.operands() != 0,
                     form.by_delta ? ~std::uint64_t{0} : 0,
                     form};
    }
  }
}

bool CoreDecoder::is_plain(const Form& form) {
  return form.is_known_kind() && !form.wide && !form.null && !form.aligned && form.further_operands == 0 &&
         !form.kind.aligns && !form.kind.labels;
}

CoreDecoder::Action CoreDecoder::action_of(const Form& form) {
  const KindTraits& kind = form.kind;
  if (!is_plain(form) || kind.counts) return Action::other;
  if (kind.allocates) return kind.releases ? Action::move : Action::make;
  return kind.releases && !kind.sizes ? Action::end : Action::other;
}

CoreDecoder::Pair CoreDecoder::pair_of(const Form& form) {
  const KindTraits& kind = form.kind;
  if (!is_plain(form) || kind.allocates == kind.releases || !kind.sizes) return Pair::none;
  if (kind.counts) return kind.allocates ? Pair::make_array : Pair::none;
  return kind.releases ? Pair::end_sized : Pair::none;
}

/// Nine events in ten are plain. Their state stays in registers from one event to the next, and the loop writes only
/// the fields that an event can have.
std::size_t CoreDecoder::next(std::span<Event> events) {
  if (std::exchange(labelled_, false)) {
    for (Event& event : events) event.label = {}, event.pool_block = 0;
  }
  const std::size_t count = std::min<std::size_t>(events.size(), left_);
  Cursor cursor = cursor_;
  CoreState state = state_;
  for (Event& event : events.first(count)) {
    const std::uint64_t first = cursor.varint();
    const Code& code = codes_[first % forms_limit];
    const std::uint64_t operand = first >> code.length;
    // There is no branch here: no branch predictor could know which of the two ways gives the next block.
    const auto given = [&] {
      const Tag from = (state.named_tag & code.by_delta) | (state.next_tag & ~code.by_delta);
      const std::uint64_t difference = (unzigzag(operand) & code.by_delta) | ((0 - operand) & ~code.by_delta);
      const Tag tag = (operand | code.by_delta) != 0 ? from + difference : 0;
      state.named_tag = tag != 0 ? tag : state.named_tag;
      return tag;
    };
    const auto set = [&](std::uint64_t size, Tag tag, Tag old_tag) {
      event.kind = code.kind;
      event.thread = state.thread;
      event.size = size;
      event.count = 1;
      event.alignment = 0;
      event.tag = tag;
      event.old_tag = old_tag;
    };
    switch (code.action) {
      case Action::make:
        set(operand, state.next_tag++, 0);
        break;
      case Action::end:
        set(0, 0, given());
        break;
      case Action::move: {
        const Tag old_tag = given();
        set(cursor.varint(), state.next_tag++, old_tag);
        break;
      }
      case Action::other:
        if (code.pair == Pair::make_array) {
          set(operand, state.next_tag++, 0);
          event.count = cursor.varint();
          break;
        }
        if (code.pair == Pair::end_sized) {
          const Tag old_tag = given();
          set(cursor.varint(), 0, old_tag);
          break;
        }
        cursor_ = cursor;
        state_ = state;
        decode_other(event, first);
        cursor = cursor_;
        state = state_;
    }
  }
  cursor_ = cursor;
  state_ = state;
  left_ -= static_cast<std::uint32_t>(count);
  if (left_ == 0 && count != 0 && !cursor_.at_end()) throw WireError(cursor_.offset(), "bytes after the last event");
  return count;
}

inline Tag CoreDecoder::old_tag(const Form& form, std::uint64_t operand) const {
  if (form.by_delta) return state_.named_tag + unzigzag(operand);
  return operand == 0 ? 0 : state_.next_tag - operand;
}

/// Decodes an item that is not plain and, after a switch or a skip, the items up to the next event.
void CoreDecoder::decode_other(Event& event, std::uint64_t first) {
  for (;; first = cursor_.varint()) {
    const Code& code = codes_[first % forms_limit];
    if (code.length != 0 && !code.form.is_control()) return decode_operands(event, code, first);
    if (!switch_state(code, first)) throw WireError(cursor_.offset(), "a code that no form has");
  }
}

bool CoreDecoder::switch_state(const Code& code, std::uint64_t first) {
  if (code.length == 0) return false;
  if (code.form.wide && first >> code.length != 0) return false;
  const std::uint64_t operand = code.form.wide ? cursor_.varint() : first >> code.length;
  if (code.form.operation == Form::thread_switch) {
    if (operand > 0xffffffff) throw WireError(cursor_.offset(), "a thread above its limit");
    state_.thread = static_cast<std::uint32_t>(operand);
  } else {
    state_.next_tag += operand;
  }
  return true;
}

/// Completes a run of touched pages by the fields that it shares with the run before.
void CoreDecoder::complete_run(Event& run, bool is_next) {
  if (run.old_tag == 0) run.old_tag = last_run_.tag;
  if (run.old_tag == 0) throw WireError(cursor_.offset(), "a touch of no block");
  if (is_next) {
    run.kind = last_run_.kind;
    run.count = last_run_.count;
    run.alignment = last_run_.alignment;
  }
  assert(names_pages(run.kind));
  run.size = last_run_.offset_in(run.old_tag) + unzigzag(run.size);
  last_run_.become(run);
}

/// Completes an event of a pool. Its alignment is the pool's operand, if `has_pool`.
void CoreDecoder::complete_pool_event(Event& event, bool has_pool, std::uint64_t given) {
  if (has_pool) {
    pool_state_.pool = event.alignment % (std::uint64_t{1} << pool_bits);
    pool_state_.next += event.alignment >> pool_bits;
    event.alignment = 0;
  }
  if (pool_state_.pool == 0 || pool_state_.pool > pools_.size())
    throw WireError(cursor_.offset(), "a pool that the block does not name");
  if (event.kind == Kind::pool_malloc) {
    event.pool_block = pool_state_.next++;
  } else {
    const std::uint64_t operand = given >> 1;
    event.pool_block = (given & 1) != 0 ? pool_state_.named + unzigzag(operand) : pool_state_.next - operand;
    pool_state_.named = event.pool_block;
  }
  if (event.pool_block == 0 || event.pool_block >= pool_block_limit || pool_state_.next > pool_block_limit)
    throw WireError(cursor_.offset(), "a pool's block above its limit");
  event.label = pools_[pool_state_.pool - 1];
  labelled_ = true;
}

void CoreDecoder::decode_operands(Event& event, const Code& code, std::uint64_t first) {
  const Form& form = code.form;
  assert(code.length != 0 && !form.is_control());
  event.kind = code.kind;
  event.thread = state_.thread;
  event.size = event.alignment = event.tag = event.old_tag = 0;
  event.count = 1;
  const KindTraits& kind = form.kind;
  bool shared = code.shares;
  if (!shared && first >> code.length != 0) throw WireError(cursor_.offset(), "a code that no form has");
  const auto operand = [&] {
    if (!shared) return cursor_.varint();
    shared = false;
    return first >> code.length;
  };
  if (kind.is_given()) {
    event.old_tag = old_tag(form, operand());
    if (event.old_tag != 0) state_.named_tag = event.old_tag;
  }
  if (kind.sizes) event.size = operand();
  if (kind.counts) event.count = operand();
  if (kind.aligns || form.aligned) event.alignment = operand();
  std::uint64_t further = 0;  // the first further operand
  for (unsigned i = 0; i != form.further_operands; ++i) i == 0 ? further = operand() : operand();
  if (kind.labels) {
    const std::uint64_t size = operand();
    if (size > label_limit) throw WireError(cursor_.offset(), "a label above its limit");
    event.label = cursor_.bytes(size);
    labelled_ = true;
  }
  const bool is_next_run = form.operation == Form::next_run;
  if (is_next_run || names_pages(event.kind)) return complete_run(event, is_next_run);
  if (is_of_pool(event.kind)) return complete_pool_event(event, form.aligned, further);
  if (kind.allocates && !form.null) event.tag = state_.next_tag++;
  if (form.is_known_kind()) return;
  ++unknown_kinds_;
  replace_unknown_kind(event, kind);
}

}  // namespace cmt::format
