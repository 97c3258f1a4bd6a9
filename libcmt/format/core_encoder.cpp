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

namespace cmt::format {
namespace {

/// Above this a first operand and a code of 7 bits do not fit 64 bits together.
constexpr unsigned shared_bits = 64 - code_bits_limit;

}  // namespace

void CoreEncoder::reset(CoreState start) {
  state_ = start;
  events_ = 0;
  items_.clear();
  operands_.clear();
  labels_.clear();
  forms_.clear();
  form_numbers_.fill(0);
}

std::uint8_t CoreEncoder::number_of(Form form) {
  std::uint8_t& number = form_numbers_[form.wire()];
  if (number == 0) {
    forms_.push_back(form);
    number = static_cast<std::uint8_t>(forms_.size());
  }
  return static_cast<std::uint8_t>(number - 1);
}

void CoreEncoder::put(Form form, std::span<const std::uint64_t> operands) {
  form.wide = !operands.empty() && operands[0] >> shared_bits != 0;
  items_.push_back(number_of(form));
  operands_.insert(operands_.end(), operands.begin(), operands.end());
}

void CoreEncoder::put_switches(const Event& event) {
  if (event.thread != state_.thread) {
    put(Form{Form::thread_switch}, std::array<std::uint64_t, 1>{event.thread});
    state_.thread = event.thread;
  }
  if (event.tag != 0 && event.tag != state_.next_tag) {
    put(Form{Form::tag_skip}, std::array<std::uint64_t, 1>{event.tag - state_.next_tag});
    state_.next_tag = event.tag;
  }
}

void CoreEncoder::add(const Event& event) {
  put_switches(event);
  ++events_;
  const KindTraits& kind = traits(event.kind);
  Form form{static_cast<std::uint8_t>(event.kind)};
  form.null = kind.allocates && event.tag == 0;
  form.aligned = kind.may_align && event.alignment != 0;

  std::uint64_t operands[5];
  unsigned count = 0;
  if (kind.releases) {
    const std::uint64_t distance = event.old_tag == 0 ? 0 : state_.next_tag - event.old_tag;
    const std::uint64_t delta = zigzag(event.old_tag - state_.named_tag);
    form.by_delta = event.old_tag != 0 && delta < distance;
    operands[count++] = form.by_delta ? delta : distance;
    if (event.old_tag != 0) state_.named_tag = event.old_tag;
  }
  if (kind.sizes) operands[count++] = event.size;
  if (kind.counts) operands[count++] = event.count;
  if (kind.aligns || form.aligned) operands[count++] = event.alignment;
  if (kind.labels) {
    operands[count++] = event.label.size();
    labels_ += event.label;
  }
  put(form, {operands, count});
  if (event.tag != 0) ++state_.next_tag;
}

FormTable CoreEncoder::table() const {
  std::vector<BitHistogram> histograms(forms_.size(), BitHistogram{});
  std::vector<unsigned> operand_counts;
  for (const Form& form : forms_) operand_counts.push_back(form.operands());
  const std::uint64_t* operand = operands_.data();
  for (const std::uint8_t item : items_) {
    const bool shares = operand_counts[item] != 0 && !forms_[item].wide;
    ++histograms[item][shares ? static_cast<unsigned>(std::bit_width(*operand)) : 0];
    operand += operand_counts[item];
  }
  return FormTable{forms_, cheapest_code(histograms)};
}

std::string CoreEncoder::finish() const {
  const FormTable table = this->table();
  const std::vector<std::uint8_t> codes = canonical_codes(table.lengths);
  std::string out;
  out.reserve(items_.size() * 2 + 1024);
  table.put(out);
  const std::uint64_t* operand = operands_.data();
  const char* label = labels_.data();
  for (const std::uint8_t item : items_) {
    const Form& form = forms_[item];
    const unsigned count = form.operands();
    const bool shares = count != 0 && !form.wide;
    put_varint(out, (shares ? *operand << table.lengths[item] : 0) | codes[item]);
    for (unsigned i = shares ? 1 : 0; i < count; ++i) put_varint(out, operand[i]);
    operand += count;
    if (form.labels()) {
      out.append(label, operand[-1]);
      label += operand[-1];
    }
  }
  return out;
}

}  // namespace cmt::format
