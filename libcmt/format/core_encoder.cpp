// The core stream: kinds, sizes, tags and threads, all that a replay needs.
//
// The events
//
//     malloc(64) = <7>      free(<6>)      free(<5>)
//
// need no tag for the allocation, which is the next; a size; and for each free the block's tag. That is named by the
// smaller of two numbers: its distance from the next tag (blocks die young), or its difference from the tag named last
// (blocks die in the order of their birth, or the reverse). Over 18 traces the second way to name a block took a third
// off the compressed size, and brought one from 0.72 to 0.03 byte an event. Columns, move-to-front tables, slot numbers
// and predictors all lost to this once zstd follows (format-spec/cmt.md gives the figures).
//
// A change of thread and a gap in the tags are items of their own before the event.

#include <algorithm>

#include "format/core.h"
#include "format/varint_writer.h"

namespace cmt::format {
namespace {

/// Above this a first operand and a code of 7 bits do not fit 64 bits together.
constexpr unsigned shared_bits = 64 - code_bits_limit;

constexpr std::uint32_t small_block = 4096;
constexpr std::size_t usual_block = 1 << 18;

}  // namespace

void CoreEncoder::reset(CoreState start) {
  state_ = start;
  events_ = 0;
  items_.clear();
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
    number = static_cast<std::uint8_t>(forms_.size());
  }
  return static_cast<std::uint8_t>(number - 1);
}

/// An item and its first operand; 0 for a form that has none.
void CoreEncoder::put(Form form, std::uint64_t first) {
  form.wide = first >> shared_bits != 0;
  const std::uint8_t number = number_of(form);
  items_.push_back(number);
  operands_.push_back(first);
  ++widths_[number][form.wide ? 0 : static_cast<unsigned>(std::bit_width(first))];
}

void CoreEncoder::put_switches(const Event& event) {
  if (event.thread != state_.thread) {
    put(Form{Form::thread_switch}, event.thread);
    state_.thread = event.thread;
  }
  if (event.tag != 0 && event.tag != state_.next_tag) {
    put(Form{Form::tag_skip}, event.tag - state_.next_tag);
    state_.next_tag = event.tag;
  }
}

void CoreEncoder::add(const Event& event) {
  put_switches(event);
  if (++events_ == small_block) make_room();
  const KindTraits& kind = traits(event.kind);
  Form form{static_cast<std::uint8_t>(event.kind)};
  form.null = kind.allocates && event.tag == 0;
  form.aligned = kind.may_align && event.alignment != 0;
  if (kind.releases) {
    const std::uint64_t distance = event.old_tag == 0 ? 0 : state_.next_tag - event.old_tag;
    const std::uint64_t delta = zigzag(event.old_tag - state_.named_tag);
    form.by_delta = event.old_tag != 0 && delta < distance;
    put(form, form.by_delta ? delta : distance);
    if (event.old_tag != 0) state_.named_tag = event.old_tag;
  } else {
    put(form, kind.sizes ? event.size : kind.labels ? event.label.size() : 0);
  }
  put_rest(event, kind.releases);
  if (event.tag != 0) ++state_.next_tag;
}

/// A block that is not small gets room for a usual one at once: to grow step by step touches all memory twice.
void CoreEncoder::make_room() {
  items_.reserve(usual_block);
  operands_.reserve(usual_block + usual_block / 2);
}

/// The operands after the first, which was the size or the label's length unless `size_follows`.
void CoreEncoder::put_rest(const Event& event, bool size_follows) {
  const KindTraits& kind = traits(event.kind);
  if (kind.sizes && size_follows) operands_.push_back(event.size);
  if (kind.counts) operands_.push_back(event.count);
  if (kind.aligns || (kind.may_align && event.alignment != 0)) operands_.push_back(event.alignment);
  if (kind.labels) labels_ += event.label;
}

std::string CoreEncoder::finish() const {
  const FormTable table{forms_, cheapest_code(widths_)};
  const std::vector<std::uint8_t> codes = canonical_codes(table.lengths);
  std::vector<unsigned> rests;  // by form: operands after the first
  for (const Form& form : forms_) rests.push_back(std::max(form.operands(), 1u) - 1);
  std::string head;
  table.put(head);
  VarintWriter out(items_.size() * 3);
  out.put(head);
  const std::uint64_t* operand = operands_.data();
  const char* label = labels_.data();
  for (const std::uint8_t item : items_) {
    const Form& form = forms_[item];
    const std::uint64_t first = *operand++;
    if (form.wide) {
      out.put(codes[item]);
      out.put(first);
    } else {
      out.put(first << table.lengths[item] | codes[item]);
    }
    for (unsigned i = rests[item]; i != 0; --i) out.put(*operand++);
    if (form.labels()) {
      out.put(std::string_view(label, first));
      label += first;
    }
  }
  return out.take();
}

}  // namespace cmt::format
