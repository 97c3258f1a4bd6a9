#include "thread_choice.h"

#include <algorithm>

namespace trace2cmt {

void ThreadChoice::add(const cmt::Event& event, const Emit& emit) {
  if (event.tag != 0) first_tag_ = std::min(first_tag_, event.tag);
  if (event.kind == cmt::Kind::mark) return emit(event);
  threads_.contains(event.thread) ? add_own(event, emit) : add_other(event, emit);
}

void ThreadChoice::add_own(cmt::Event event, const Emit& emit) {
  const bool is_others = event.old_tag >= first_tag_ && blocks_.find(event.old_tag) == nullptr;
  if (is_others) {
    if (event.tag == 0) return;
    event.old_tag = event.old_address = 0;
  }
  if (event.ends_block()) blocks_.erase(event.old_tag);
  if (event.tag != 0) blocks_.insert({event.tag});
  emit(event);
}

void ThreadChoice::add_other(const cmt::Event& event, const Emit& emit) {
  if (!event.ends_block() || !blocks_.erase(event.old_tag)) return;
  if (!event.makes_block()) return emit(event);
  emit({.kind = cmt::Kind::free,
        .thread = event.thread,
        .old_tag = event.old_tag,
        .old_address = event.old_address,
        .time_ns = event.time_ns});
}

}  // namespace trace2cmt
