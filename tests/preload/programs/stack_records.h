// Reads the records of call stacks from the rings of this process, which is traced: what its threads have recorded,
// decoded by code that is not the collector's. The rings keep what the collector has read, until they are full.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cmt/kinds.h"
#include "preload/cmttrace.h"
#include "preload/protocol.h"
#include "preload/stack_share.h"

namespace stacks {

struct ReadStack {
  std::vector<std::uint64_t> keys;  // outermost first
  bool is_cut = false, is_apart = false;
};

struct ReadEvent {
  std::uint32_t kind = 0;
  std::uint64_t address = 0, size = 0;
  ReadStack stack;
};

[[noreturn]] inline void fault(const std::string& what) {
  std::fprintf(stderr, "%d: %s\n", static_cast<int>(getpid()), what.c_str());
  std::abort();
}

// The rings' memory. CMTTRACE_RINGS must not be set.
inline Control* find_control() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:cmttrace") == std::string::npos) continue;
    auto* const control = reinterpret_cast<Control*>(std::stoull(line, nullptr, 16));
    if (std::memcmp(control->magic, ring_magic, sizeof control->magic) == 0) return control;
  }
  fault("the process is not traced");
}

inline bool has_stack(const Control& control, std::uint32_t kind) {
  switch (kind) {
#define CMT_KIND(name, number, call, traits) \
  case number:                               \
    return ((traits)&cmt_allocates) != 0 || (((traits)&cmt_releases) != 0 && control.stacks_of_frees != 0);
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  }
  return false;
}

class RingReader {
 public:
  RingReader(Control* control, const Ring* ring) : control_(control), ring_(ring) {
    share_ = reinterpret_cast<const StackShare*>(reinterpret_cast<char*>(control) + control->stacks_at);
  }

  /// `jumps`: how often a signal handler has left by longjmp, and perhaps left an event that is not published.
  std::vector<ReadEvent> read(int jumps) {
    if (ring_->reserved > ring_->slots) fault("the ring has lost records");
    bool was_published = true;
    for (std::uint64_t at = 0; at < ring_->reserved; ++at) {
      const Slot& slot = ring_slots(control_, ring_)[at];
      const bool is_published = slot_is_published(&slot, at, ring_->slots);
      if (was_published && !is_published && --jumps < 0)
        fault("record " + std::to_string(at) + " of " + std::to_string(ring_->reserved) + " is not published; limit " +
              std::to_string(ring_->limit));
      if (is_published)
        read_record(slot);
      else
        pass_over();
      was_published = is_published;
    }
    return std::move(events_);
  }

 private:
  std::uint64_t key_of(std::uint32_t index) const {
    if (index >= share_->table.used || share_->table.rule[index].key == 0) fault("a frame without an entry");
    const std::uint64_t key = share_->table.rule[index].key, address = key & ~UNWIND_EXACT;
    const std::uint32_t number = share_->module_of_rule[index];
    if (number != 0 && (address < share_->module[number - 1].begin || address > share_->module[number - 1].end))
      fault("a frame of another module");
    return key;
  }

  // The next stack of an event that was left is to be whole.
  void pass_over() {
    if (left_ != 0) last_.keys.clear();
    left_ = 0;
    has_apart_ = false;
    size_ = 0;
  }

  void begin_stack(const Slot& slot) {
    std::uint32_t frames[stack_frames_first];
    head_ = stack_of_slot(&slot, frames);
    if (left_ != 0) fault("a stack within a stack");
    if (head_.is_apart && head_.kept != 0) fault("a stack apart that keeps frames");
    if (!head_.is_apart) {
      if (head_.kept != 0 && head_.number != number_) fault("a stack is missing");
      number_ = (head_.number + 1) % stack_numbers;
      if (head_.kept > last_.keys.size()) fault("more frames kept than there are");
      if (head_.kept != 0 && head_.is_cut != last_.is_cut) fault("the end of a stack that is kept has changed");
    }
    ReadStack& to = head_.is_apart ? apart_ : last_;
    to.keys.resize(head_.kept);
    to.is_cut = head_.is_cut;
    to.is_apart = has_apart_ = head_.is_apart;
    left_ = head_.added;
    append(frames, stack_frames_first);
  }

  void append(const std::uint32_t* frames, std::uint32_t most) {
    ReadStack& to = head_.is_apart ? apart_ : last_;
    for (std::uint32_t i = 0; i < most && left_ != 0; ++i, --left_) to.keys.push_back(key_of(frames[i]));
  }

  void read_record(const Slot& slot) {
    const std::uint32_t kind = slot_kind(slot.head);
    if (kind == record_stack) return begin_stack(slot);
    if (kind == record_frames) {
      std::uint32_t frames[stack_frames_more];
      frames_of_slot(&slot, frames);
      return append(frames, stack_frames_more);
    }
    if (left_ != 0) fault("a stack without its end");
    if (kind == record_size) size_ = slot.body;
    if (kind == record_void) has_apart_ = false;
    if (kind >= record_events) return;
    ReadEvent event{kind, slot.head >> slot_address_shift, size_ != 0 ? size_ : slot.body >> 32, {}};
    if (has_stack(*control_, kind))
      event.stack = has_apart_ ? apart_ : last_;
    else if (has_apart_)
      fault("a stack apart of an event that has none");
    has_apart_ = false;
    size_ = 0;
    events_.push_back(std::move(event));
  }

  Control* control_;
  const Ring* ring_;
  const StackShare* share_;
  StackRecord head_{};
  std::uint32_t left_ = 0, number_ = 0;
  ReadStack last_, apart_;
  bool has_apart_ = false;
  std::uint64_t size_ = 0;
  std::vector<ReadEvent> events_;
};

/// The events of all rings of this process. Ends its recording. `jumps`: of RingReader::read().
inline std::vector<ReadEvent> read_all(int jumps = 0) {
  cmt_pause();
  Control* const control = find_control();
  if (control->stacks_at == 0) fault("no stacks are recorded");
  std::vector<ReadEvent> all;
  for (std::uint32_t i = 0; i < control->rings_used; ++i) {
    auto events = RingReader(control, ring_at(control, i)).read(jumps);
    all.insert(all.end(), events.begin(), events.end());
  }
  return all;
}

}  // namespace stacks
