// The core stream: kinds, sizes, tags and threads, all that a replay needs.
//
// The events
//
//     malloc(64) = <7>      free(<6>)      free(<5>)
//
// need a size for the allocation, whose tag is the next one, and a tag for each free. A free gives the tag by the
// smaller of two numbers:
//
// - its distance from the next tag, because blocks die young;
//
// - its difference from the tag given last, because blocks die in the order of birth or in reverse.
//
// The second way reduced the compressed size of 18 traces by a third, and that of one trace from 0.72 to 0.03 byte an
// event. Columns, move-to-front tables, slot numbers and predictors were all larger after zstd (format-spec/cmt.md has
// the figures).
//
// Runs of touched pages mostly follow one another in the same block, or a block is touched as the block before was. So
// a run names the block of the run before by 0; in other events 0 means NULL. Such a run does not change the tag given
// last, by which the frees around it are encoded. The offset of a run is the difference from the end of the run before.
// If the difference is 0 and all else is equal too, the block is the only operand: one byte instead of five.
//
// A change of the thread and a gap in the tags are items of their own before the event.

#include <algorithm>
#include <cassert>

#include "libcmt/format/coding.h"
#include "libcmt/format/core.h"

namespace cmt::format {
namespace {

constexpr std::ptrdiff_t items_at_first = 8192, usual_items = (1 << 18) + 4096;

/// A form with its code, as finish() needs it.
struct Coded {
  std::uint8_t code = 0, length = 0;
  bool alone = true;  // the item has no more than its first number
  bool wide = false, labels = false;
  unsigned rest = 0;  // operands after the first
};

std::vector<Coded> coded(const std::vector<Form>& forms, const std::vector<std::uint8_t>& lengths) {
  const std::vector<std::uint8_t> codes = canonical_codes(lengths);
  assert(lengths.size() == forms.size());
  std::vector<Coded> all;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Form& form = forms[i];
    const unsigned rest = std::max(form.operands(), 1u) - 1;
    all.push_back(
        {codes[i], lengths[i], !form.wide && !form.kind.labels && rest == 0, form.wide, form.kind.labels, rest});
  }
  return all;
}

}  // namespace

void CoreEncoder::reset(CoreState start) {
  state_ = start;
  last_run_ = {};
  pool_state_ = {};
  pools_.clear();
  events_ = 0;
  items_end_ = items_.get();
  operands_.clear();
  labels_.clear();
  forms_.clear();
  widths_.clear();
  form_numbers_.fill(0);
}

std::uint8_t CoreEncoder::number_of(Form form) {
  std::uint8_t& number = form_numbers_[form.wire()];
  if (number == 0) {
    forms_.push_back(form);
    widths_.emplace_back();
    assert(forms_.size() <= forms_limit && forms_.size() == widths_.size());
    number = static_cast<std::uint8_t>(forms_.size());
  }
  return static_cast<std::uint8_t>(number - 1);
}

/// Appends an item with its first operand, which is 0 for a form without operands.
void CoreEncoder::put(Form form, std::uint64_t first) {
  form.wide = first >> shared_bits != 0;
  if (items_end_ == items_limit_) make_room();
  if (form.wide) operands_.push_back(first);
  put_item(number_of(form), form.wide ? 0 : first);
}

/// Grows the first time to the size of a usual block: growing step by step would touch all memory twice.
void CoreEncoder::make_room() {
  const std::ptrdiff_t used = items_end_ - items_.get(), now = items_limit_ - items_.get();
  const std::ptrdiff_t wanted = now == 0 ? items_at_first : std::max(now * 2, usual_items);
  assert(wanted > now && used == now);
  auto items = std::make_unique_for_overwrite<std::uint64_t[]>(static_cast<std::size_t>(wanted));
  std::copy(items_.get(), items_end_, items.get());
  items_ = std::move(items);
  items_end_ = items_.get() + used;
  items_limit_ = items_.get() + wanted;
}

// The state is in local variables, which the compiler can keep in registers.
std::size_t CoreEncoder::add_short(std::span<const BlockEvent> events) {
  constexpr std::size_t items_max = 2;  // of an event: a switch of threads, and its own
  const std::size_t count = std::min(events.size(), static_cast<std::size_t>(items_limit_ - items_end_) / items_max);
  CoreState state = state_;
  std::uint64_t* item = items_end_;
  BitHistogram* const widths = widths_.data();
  const auto put_if_known = [&](unsigned wire, std::uint64_t first) {
    const unsigned number = form_numbers_[wire];
    if (number == 0 || first >> shared_bits != 0) return false;
    *item++ = first << code_bits_limit | (number - 1);
    ++widths[number - 1][static_cast<unsigned>(std::bit_width(first))];
    return true;
  };
  std::size_t i = 0;
  for (; i < count; ++i) {
    const BlockEvent& event = events[i];
    if (event.tag == 0 || event.alignment_log != 0 || traits(event.kind).aligns) break;
    if (event.thread != state.thread) {
      if (!put_if_known(thread_switch, event.thread)) break;
      state.thread = event.thread;
    }
    const unsigned number = static_cast<unsigned>(event.kind), kind = (number & 31u) | (number >> 5) << 9;
    const std::uint64_t distance = state.next_tag - event.tag;
    if (event.makes_block) {
      if (distance != 0 || !put_if_known(kind, event.size)) break;
      ++state.next_tag;
    } else {
      const std::uint64_t delta = zigzag(event.tag - state.named_tag);
      const bool by_delta = is_delta_shorter(delta, distance);
      if (!put_if_known(kind | unsigned{by_delta} << 5, by_delta ? delta : distance)) break;
      state.named_tag = event.tag;
      if (traits(event.kind).sizes) operands_.push_back(event.size);
    }
  }
  state_ = state;
  items_end_ = item;
  events_ += static_cast<std::uint32_t>(i);
  return i;
}

void CoreEncoder::put_switches(const Event& event) {
  if (event.thread != state_.thread) {
    put(Form{Form::thread_switch}, event.thread);
    state_.thread = event.thread;
  }
  if (event.tag != 0) skip_to(event.tag);
}

void CoreEncoder::put_skip(Tag tag) {
  put(Form{Form::tag_skip}, tag - state_.next_tag);
  state_.next_tag = tag;
}

/// Appends an item whose first operand is a block.
void CoreEncoder::put_given(Form form, Tag tag) {
  const std::uint64_t distance = tag == 0 ? 0 : state_.next_tag - tag;
  const std::uint64_t delta = zigzag(tag - state_.named_tag);
  form.by_delta = tag != 0 && is_delta_shorter(delta, distance);
  put(form, form.by_delta ? delta : distance);
  if (tag != 0) state_.named_tag = tag;
}

void CoreEncoder::put_run(const Event& run) {
  const bool is_next = last_run_.is_continued_by(run);
  Form form = Form::of(run.kind);
  if (is_next) {
    form.operation = Form::next_run;
    form.kind = KindTraits(cmt_names);
  }
  put_given(form, run.old_tag == last_run_.tag ? 0 : run.old_tag);
  if (!is_next) {
    operands_.push_back(zigzag(run.size - last_run_.offset_in(run.old_tag)));
    operands_.push_back(run.count);
    operands_.push_back(run.alignment);
  }
  last_run_.become(run);
}

/// The place of a pool among the block's pools, counted from 1.
std::size_t CoreEncoder::pool_of(std::string_view name) {
  name = name.substr(0, pool_name_limit);
  if (pool_state_.pool != 0 && pools_[pool_state_.pool - 1] == name) return pool_state_.pool;
  const auto place = static_cast<std::size_t>(std::find(pools_.begin(), pools_.end(), name) - pools_.begin());
  if (place == pools_.size()) pools_.emplace_back(name);
  return place + 1;
}

/// Appends an event of a pool. An event states its pool if the event before has another one, and then also the number
/// of the next block. Blocks are ended as those of malloc are; a further operand cannot state in its form by which
/// number the block is given, so its lowest bit does.
void CoreEncoder::put_pool_event(const Event& event) {
  Form form = Form::of(event.kind);
  const bool makes = event.kind == Kind::pool_malloc;
  const std::size_t pool = pool_of(event.label);
  std::uint64_t skipped = makes ? event.pool_block - pool_state_.next : 0;
  if (skipped >= pool_block_limit) skipped = 0;  // the number does not rise: only in damaged traces
  form.aligned = pool != pool_state_.pool || skipped != 0;
  const std::uint64_t pool_operand = skipped << pool_bits | pool;
  if (form.aligned) {
    pool_state_.pool = pool;
    pool_state_.next += skipped;
  }
  if (makes) {
    put(form, event.size);
    if (form.aligned) operands_.push_back(pool_operand);
    ++pool_state_.next;
    return;
  }
  const std::uint64_t distance = pool_state_.next - event.pool_block,
                      delta = zigzag(event.pool_block - pool_state_.named);
  const std::uint64_t given = is_delta_shorter(delta, distance) ? delta << 1 | 1 : distance << 1;
  put(form, form.aligned ? pool_operand : given);
  if (form.aligned) operands_.push_back(given);
  pool_state_.named = event.pool_block;
}

void CoreEncoder::add_other(const Event& event) {
  put_switches(event);
  if (names_pages(event.kind)) return put_run(event);
  if (is_of_pool(event.kind)) return put_pool_event(event);
  Form form = Form::of(event.kind);
  const KindTraits kind = form.kind;
  form.null = kind.allocates && event.tag == 0;
  form.aligned = kind.may_align && event.alignment != 0;
  if (kind.is_given()) {
    put_given(form, event.old_tag);
  } else {
    put(form, kind.sizes ? event.size : kind.labels ? event.label.size() : 0);
  }
  put_rest(event, kind.is_given());
  if (event.tag != 0) ++state_.next_tag;
}

/// Appends the operands after the first. The first was the size, or the label's length, unless `size_follows`.
void CoreEncoder::put_rest(const Event& event, bool size_follows) {
  const KindTraits& kind = traits(event.kind);
  if (kind.sizes && size_follows) operands_.push_back(event.size);
  if (kind.counts) operands_.push_back(event.count);
  if (kind.aligns || (kind.may_align && event.alignment != 0)) operands_.push_back(event.alignment);
  if (kind.labels) labels_ += event.label;
}

std::string CoreEncoder::finish() const {
  const FormTable table{forms_, cheapest_code(widths_)};
  const std::vector<Coded> forms = coded(forms_, table.lengths);
  std::string head;
  table.put(head);
  VarintWriter out(static_cast<std::size_t>(items_end_ - items_.get()) * 3);
  out.put(head);
  const std::uint64_t* operand = operands_.data();
  const char* label = labels_.data();
  for (const std::uint64_t* item = items_.get(); item != items_end_;) {
    item = out.put_while(item, items_end_, [&](std::uint64_t each, std::uint64_t& number) {
      const Coded& form = forms[each % forms_limit];
      number = each >> code_bits_limit << form.length | form.code;
      return form.alone;
    });
    if (item == items_end_) break;
    const Coded& form = forms[*item % forms_limit];
    const std::uint64_t first = *item++ >> code_bits_limit;
    out.put(first << form.length | form.code);
    if (form.wide) out.put(*operand++);
    for (unsigned i = form.rest; i != 0; --i) out.put(*operand++);
    if (form.labels) {
      out.put(std::string_view(label, first));
      label += first;
    }
  }
  assert(operand == operands_.data() + operands_.size() && label == labels_.data() + labels_.size());
  return out.take();
}

}  // namespace cmt::format
