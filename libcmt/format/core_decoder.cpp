#include "format/core.h"

namespace cmt::format {
namespace {

constexpr std::uint64_t label_limit = 4096;

}  // namespace

CoreDecoder::CoreDecoder(std::string_view bytes, CoreState start, std::uint32_t events)
    : cursor_(bytes), state_(start), left_(events) {
  const FormTable table = FormTable::take(cursor_);
  const std::vector<std::uint8_t> codes = canonical_codes(table.lengths);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const Form& form = table.forms[i];
    const bool is_free = form.operation == static_cast<int>(Kind::free);
    const bool is_plain = !form.wide && (is_free || form.operation == static_cast<int>(Kind::malloc));
    const unsigned step = 1u << table.lengths[i];
    for (unsigned low = codes[i]; low < forms_limit; low += step) {
      codes_[low] = {table.lengths[i], is_plain, is_free, !form.wide && form.operands() != 0, form};
    }
  }
}

/// Nine events in ten are plain; what they change stays in registers from one to the next.
std::size_t CoreDecoder::next(std::span<Event> events) {
  const std::size_t count = std::min<std::size_t>(events.size(), left_);
  Cursor cursor = cursor_;
  CoreState state = state_;
  for (Event& event : events.first(count)) {
    const std::uint64_t first = cursor.varint();
    const Code& code = codes_[first % forms_limit];
    if (!code.plain) {
      cursor_ = cursor;
      state_ = state;
      decode_other(event, first);
      cursor = cursor_;
      state = state_;
      continue;
    }
    const std::uint64_t operand = first >> code.length;
    event = Event{.kind = Kind::malloc, .thread = state.thread};
    if (code.releases) {
      event.kind = Kind::free;
      event.old_tag = code.form.by_delta ? state.named_tag + unzigzag(operand)
                      : operand == 0     ? 0
                                         : state.next_tag - operand;
      if (event.old_tag != 0) state.named_tag = event.old_tag;
    } else {
      event.size = operand;
      if (!code.form.null) event.tag = state.next_tag++;
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

/// An item that is not plain, and those after it up to an event.
void CoreDecoder::decode_other(Event& event, std::uint64_t first) {
  for (;; first = cursor_.varint()) {
    const Code& code = codes_[first % forms_limit];
    if (code.form.operation < kind_count && code.length != 0) return decode_operands(event, code, first);
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

void CoreDecoder::decode_operands(Event& event, const Code& code, std::uint64_t first) {
  const Form& form = code.form;
  event = Event{.kind = static_cast<Kind>(form.operation), .thread = state_.thread};
  const KindTraits& kind = traits(event.kind);
  bool shared = code.shares;
  if (!shared && first >> code.length != 0) throw WireError(cursor_.offset(), "a code that no form has");
  const auto operand = [&] {
    if (!shared) return cursor_.varint();
    shared = false;
    return first >> code.length;
  };
  if (kind.releases) {
    event.old_tag = old_tag(form, operand());
    if (event.old_tag != 0) state_.named_tag = event.old_tag;
  }
  if (kind.sizes) event.size = operand();
  if (kind.counts) event.count = operand();
  if (kind.aligns || form.aligned) event.alignment = operand();
  if (kind.labels) {
    const std::uint64_t size = operand();
    if (size > label_limit) throw WireError(cursor_.offset(), "a label above its limit");
    event.label = cursor_.bytes(size);
  }
  if (kind.allocates && !form.null) event.tag = state_.next_tag++;
}

}  // namespace cmt::format
