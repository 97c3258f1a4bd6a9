// Captures call stacks. Nearly all captures take unwind_capture_quickly(), a path of its own: otherwise half of their
// time would be lost in work that only the others need.
#include <string.h>

#include "preload/program/kernel.h"
#include "preload/program/unwind/quick.h"

enum { distant_captures_max = 16, stray_captures_max = 256, little_stack_bytes = 16 << 10 };

int unwind_limit;
static int frames_dropped;  // of a stack with more, at once: dropping one for each new one would change all numbers

// Among the words that frames outside of `frame` need, finds the innermost that has changed, and returns its frame, or
// -1. The stack can be read from `begin` to `end`.
static __attribute__((noinline)) int find_changed_word(const struct UnwindThread* self, int frame, uintptr_t begin,
                                                       uintptr_t end) {
  for (int i = self->words - 1; i >= 0; i--) {
    const struct UnwindWord* word = &self->word[i];
    if (word->frame >= frame || word->from > frame) continue;
    if (word->at - begin >= end - begin || *(const uint64_t*)word->at != word->value) return word->frame;
  }
  return -1;
}

const struct UnwindRule* quick_find_slowly(struct UnwindThread* self, uint64_t key) {
  const struct UnwindRule* entry = rule_find(key);
  const uint64_t rule = entry ? __atomic_load_n(&entry->rule, __ATOMIC_RELAXED) : rule_unknown;
  struct UnwindRule* cell = quick_cell(self, key);
  if (rule_kind(rule) != rule_from_rsp && rule_kind(rule) != rule_from_rbp) return NULL;
  cell->key = 0;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);  // a signal handler may leave this function by longjmp
  cell->rule = rule;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  cell->key = key | (uint64_t)rule_index(entry) << code_bits;
  return cell;
}

bool quick_replace_code(struct UnwindThread* self, int frame, uint64_t key) {
  if (key == 0 || !is_code_address(key)) return false;
  const struct UnwindRule* cell = quick_cell(self, key);
  if ((cell->key & code_mask) != key && !(cell = quick_find_slowly(self, key))) return false;
  if (!has_rule(self->code[frame], cell->rule)) return false;
  self->code[frame] = cell->key;
  return true;
}

// Whether `frame`, which is found by rbp, is where it was: rbp is saved below the return address inside.
static inline bool has_saved_rbp(const struct UnwindThread* self, long frame) {
  const uintptr_t inside = decode_place(self, self->places[frame + 1]), at = decode_place(self, self->places[frame]);
  return *(const uint64_t*)(inside - 8) == at - 8;
}

// Compares the frames from `frame` on, down to `last`, with the stack, which can be read up to `end`. Places rise from
// frame to frame. Returns the first that differs, or last - 1.
static __attribute__((noinline)) long compare(const struct UnwindThread* self, long frame, long last, uint32_t end) {
  const uintptr_t base = self->base;
  for (; frame >= last; frame--) {
    const uint32_t place = self->places[frame];
    const uint64_t in_words = place & ~(uint32_t)by_rbp;
    if (__builtin_expect(place >= end, 0)) break;  // no_place, too
    if (__builtin_expect((*(const uint64_t*)(base + in_words * 4) ^ self->code[frame]) << (64 - code_bits) != 0, 0))
      break;
    if (place & by_rbp && !has_saved_rbp(self, frame)) break;
  }
  return frame;
}

// Compares the frames outside of `frame`, at which the walk has arrived at `at`, with the stack, which can be read up
// to `end`. Returns the first whose place may have changed, or -1. `kept` is lowered to the first with another return
// address.
static int find_difference(struct UnwindThread* self, int frame, uintptr_t at, uintptr_t end, int* kept) {
  const int changed = __builtin_expect(self->words != 0, 0) ? find_changed_word(self, frame, at, end) : -1;
  const uint32_t end_place = encode_place(self, end - 8) | by_rbp;
  if (__builtin_expect(end_place > no_place || self->places[frame] >= end_place, 0)) return frame - 1;
  for (long i = frame - 1;; i--) {
    i = compare(self, i, changed + 1, end_place);
    if (i <= changed) return changed;
    if (self->places[i] >= end_place) return (int)i;
    const uint64_t key = *(const uint64_t*)decode_place(self, self->places[i]);
    if (((key ^ self->code[i]) & code_mask) == 0 || !quick_replace_code(self, (int)i, key)) return (int)i;
    *kept = (int)i < *kept ? (int)i : *kept;
    if (self->places[i] & by_rbp && !has_saved_rbp(self, i)) return (int)i;
  }
}

// Prepares to walk on from `frame`, which is stored again: all frames from `arrived`, where the walk has arrived, to it
// are unchanged. Returns false if that is not known.
static bool resume_at(struct Walk* walk, int frame, int arrived) {
  const struct UnwindThread* self = walk->self;
  if (self->places[frame] == no_place) return false;
  for (int i = frame + 1; i <= arrived; i++) {
    const uint64_t rule = rule_of_code(self->code[i])->rule;
    const enum RuleKind kind = rule_kind(rule);
    if (self->places[i] == no_place ||
        (kind != rule_from_rsp && kind != rule_from_rbp && kind != rule_jit && kind != rule_bare))
      return false;
    if (!rule_slot(rule)) continue;
    const uintptr_t base = kind == rule_from_rsp ? decode_place(self, self->places[i]) + 8
                                                 : decode_place(self, self->places[i - 1]) + 8 - rule_distance(rule);
    walk->place.rbp_at = base + 8 * (rule_slot(rule) - 1);
    walk->rbp_from = i;
    break;
  }
  walk->place.at = decode_place(self, self->places[frame]);
  walk->place.key = self->code[frame] & code_mask;
  walk->flag = self->places[frame] & by_rbp;
  walk->has_place = true;
  return true;
}

static void begin_walk(struct Walk* walk, struct UnwindThread* self, const void* frame) {
  *walk = (struct Walk){.self = self,
                        .place = place_of_caller(frame),
                        .first = unwind_frames_max,
                        .first_min = unwind_frames_max - unwind_limit,
                        .first_word = unwind_words_max,
                        .rbp_step = -1,
                        .rbp_from = outside,
                        .has_place = true};
  self->full_steps = 0;
  memory_enter(self, (uintptr_t)frame, &walk->part);
}

// Places are relative to a stack. When a thread is on a distant stack for longer than most signal handlers are, the
// places of the last stack are given up.
static void rebase(struct UnwindThread* self, const struct StackPart* part) {
  if (self->base && ++self->distant_captures < distant_captures_max) return;
  self->distant_captures = 0;
  self->base = part->is_own ? part->end - places_bytes : part->begin - places_bytes / 2;
  self->base &= ~(uintptr_t)7;
  for (int i = 0; i < self->frames; i++) self->places[i] = no_place;
  for (int i = 0; i < unwind_margin; i++) self->places_before[i] = outside_places;
  self->words = 0;
}

static void drop_outer(struct UnwindThread* self, int dropped) {
  int gone = 0;
  while (gone < self->words && self->word[gone].frame < dropped) gone++;
  self->frames -= dropped;
  self->words -= gone;
  memmove(self->code, self->code + dropped, (size_t)self->frames * sizeof *self->code);
  memmove(self->places, self->places + dropped, (size_t)self->frames * sizeof *self->places);
  memmove(self->word, self->word + gone, (size_t)self->words * sizeof *self->word);
  for (int i = 0; i < self->words; i++) {
    self->word[i].frame -= dropped;
    if (self->word[i].from < outside) self->word[i].from -= dropped;
  }
  self->is_cut = self->is_limited = true;
}

// Keeps a stack within the limit. A stack that had lost its outer frames, and is small again, gets some back.
static bool keep_limit(struct Walk* walk) {
  struct UnwindThread* self = walk->self;
  int kept = 0;
  if (self->frames > unwind_limit)
    drop_outer(self, self->frames - unwind_limit + frames_dropped);
  else if (self->is_limited && self->frames < unwind_limit - 2 * frames_dropped) {
    if (!resume_at(walk, 0, self->frames - 1)) return false;
    walk->is_limited = false;
    walk->first_min = unwind_frames_max - (unwind_limit - self->frames + 1);
    walk_to_last(walk, -1, self->frames);
    if (walk->has_no_room || !walk_splice(walk, -1, 0, &kept)) return false;
    self->is_cut = walk->is_cut;
    self->is_limited = walk->is_limited;
  } else {
    return true;
  }
  self->is_resent = true;
  return true;
}

// Ends a walk that has arrived at frame `arrived`: compares the frames outside of it, and walks where they have
// changed. Returns false if the last stack cannot be continued.
static __attribute__((noinline)) bool finish(struct Walk* walk, int arrived, int changed, int* kept) {
  struct UnwindThread* self = walk->self;
  while (!walk->is_ended && changed >= 0) {
    if (!resume_at(walk, changed + 1, arrived)) return false;
    arrived = walk_to_last(walk, changed, self->frames);
    if (walk->has_no_room || !walk_splice(walk, arrived, changed + 1, kept)) return false;
    if (walk->is_ended) break;
    changed = find_difference(self, arrived, walk->place.at, walk->part.end, kept);
  }
  if (walk->is_ended) {
    self->is_cut = walk->is_cut;
    self->is_limited = walk->is_limited;
  }
  self->is_resent = false;
  if (!keep_limit(walk)) return false;
  if (self->is_resent) *kept = 0;
  return true;
}

static __attribute__((noinline)) bool capture(struct UnwindThread* self, const void* frame, int* kept) {
  struct Walk walk;
  begin_walk(&walk, self, frame);
  if (__builtin_expect(encode_place(self, walk.place.at) == no_place, 0)) rebase(self, &walk.part);
  const int arrived = walk_to_last(&walk, self->frames - 1, 0);
  if (self->frames == 0) *kept = 0;
  if (!walk_splice(&walk, arrived, self->frames - 1, kept)) return false;
  const int changed = walk.is_ended ? -1 : find_difference(self, arrived, walk.place.at, walk.part.end, kept);
  return finish(&walk, arrived, changed, kept);
}

// Notes where unwind_capture_quickly() may begin next time.
static void note_quick_range(struct UnwindThread* self) {
  const bool is_on_own = self->base + places_bytes == self->own_end && self->own_begin >= self->base;
  self->quick_begin = self->own_begin;
  self->quick_bytes = is_on_own && !self->is_limited && self->frames > 0 ? self->own_end - self->own_begin : 0;
}

// Whether a capture that was begun at `busy` is still under way. longjmp may have left it: then `frame` is outside of
// it on the same stack.
static bool is_under_way(const struct UnwindThread* self, uintptr_t busy, const void* frame) {
  const uintptr_t bytes = self->own_end - self->own_begin, now = (uintptr_t)frame;
  if (busy == 0) return false;
  return busy > now || busy - self->own_begin >= bytes || now - self->own_begin >= bytes;
}

// The frames that a capture apart has passed.
struct Passed {
  bool busy;     // the frame of the interposed function that is `busy`
  bool handler;  // a signal handler's
};

// Captures the stack by rules alone, without the last stack.
static struct Passed capture_apart(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) {
  struct Place place = place_of_caller(frame);
  struct StackPart part;
  const int most = unwind_limit < unwind_apart_frames_max ? unwind_limit : unwind_apart_frames_max;
  struct Passed passed = {false, false};
  self->full_steps = 0;
  memory_enter(self, (uintptr_t)frame, &part);
  while (stack->frames < most) {
    const struct UnwindRule* entry = rule_find(place.key);
    if (entry && rule_kind(entry->rule) == rule_jit) entry = rule_check_jit(entry);
    if (!entry) break;
    const uint64_t rule = entry->rule;
    self->apart[unwind_apart_frames_max - ++stack->frames] = rule_index(entry);
    passed.busy |= place.at == self->busy + 8 && (place.key == self->busy_code || self->busy_code == 0);
    passed.handler |= rule_kind(rule) == rule_signal;
    if (step(self, &part, &place, rule) == step_failed) {
      stack->is_cut = rule_kind(rule) != rule_outermost;
      break;
    }
    if (place.key == 0) stack->is_cut = false;
    if (place.key == 0 || !is_code_address(place.key & ~UNWIND_EXACT)) break;
  }
  return passed;
}

void unwind_capture_apart(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) {
  *stack = (struct UnwindStack){.is_cut = true, .is_apart = true};
  if (is_under_way(self, self->busy_apart, frame)) return;  // a handler in a handler, both within captures
  self->busy_apart = (uintptr_t)frame;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  capture_apart(self, frame, stack);
}

// A capture was begun and has not ended. If it goes on, captures apart. Returns false if longjmp has left it. The end
// of the walk shows this: both captures are on the thread's own stack, and this one was not called from the other. If
// one of them is on another stack, such as a coroutine's, the walk may pass no handler's frame. Then it is either not
// in a handler, or a handler has changed stacks; the latter is not believed for long.
static __attribute__((noinline)) bool capture_within(struct UnwindThread* self, const void* frame,
                                                     struct UnwindStack* stack) {
  const uintptr_t busy = self->busy, own_bytes = self->own_end - self->own_begin;
  if (!is_under_way(self, busy, frame)) return false;
  *stack = (struct UnwindStack){.is_cut = true, .is_apart = true};
  if (is_under_way(self, self->busy_apart, frame)) return true;
  self->busy_apart = (uintptr_t)frame;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const struct Passed passed = capture_apart(self, frame, stack);
  if (passed.busy || stack->is_cut) return true;
  if (busy - self->own_begin < own_bytes && (uintptr_t)frame - self->own_begin < own_bytes) return false;
  return passed.handler || ++self->stray_captures < stray_captures_max;
}

// Captures the stack, after `busy` was set. Returns how many outer frames are unchanged.
static __attribute__((noinline)) int capture_slowly(struct UnwindThread* self, const void* frame) {
  int kept = INT32_MAX;
  uint32_t epoch;
  do {  // a signal handler that forks gives the child another table of rules
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE);
    if (self->epoch != epoch) {
      unwind_forget(self);
      memset(self->near, 0, sizeof self->near);  // of modules that are gone
      self->epoch = epoch;
    }
    if (!capture(self, frame, &kept)) {
      unwind_forget(self);
      capture(self, frame, &kept);
      kept = 0;
    }
  } while (__atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE) != epoch);
  note_quick_range(self);
  return kept < self->frames ? kept : self->frames;
}

int quick_go_on(struct UnwindThread* self, const void* frame, struct Arrival arrived, int changed, int kept) {
  if (changed >= 0) changed = find_difference(self, changed + 1, arrived.place.at, self->base + places_bytes, &kept);
  if (changed >= 0) {
    struct Walk walk;
    begin_walk(&walk, self, frame);
    walk.place = arrived.place;
    const int inner_end = arrived.frame + 1 + unwind_frames_max - arrived.first;
    for (int i = inner_end - 1; i > arrived.frame; i--)
      if (rule_slot(rule_of_code(self->code[i])->rule)) walk.rbp_from = i;
    const bool is_whole = finish(&walk, arrived.frame, changed, &kept);
    note_quick_range(self);
    if (!is_whole) {
      unwind_forget(self);
      return capture_slowly(self, frame), 0;
    }
  }
  if (self->epoch != __atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE)) return capture_slowly(self, frame);
  return kept < self->frames ? kept : self->frames;
}

static __attribute__((noinline)) void capture_here(struct UnwindThread* self, const void* frame,
                                                   struct UnwindStack* stack) {
  if (self->busy != 0) {
    if (capture_within(self, frame, stack)) return;
    unwind_forget(self);  // half a capture
  }
  unwind_begin(self, frame);
  const int kept = capture_slowly(self, frame);
  *stack = (struct UnwindStack){kept, self->frames, self->is_cut, false};
}

// Whether a capture, which takes 4 KiB of stack, may be too much. Nobody knows the size of a stack that libc has not
// made: signal handlers and coroutines run on some that are smaller.
static bool has_little_stack(const struct UnwindThread* self, const void* frame) {
  const uintptr_t above = (uintptr_t)frame - self->own_begin;
  return above >= self->own_end - self->own_begin || above < little_stack_bytes;
}

// Captures on a stack of our own. Signals are blocked: a handler on this stack would have little room, and would not
// find its thread's stack.
static __attribute__((noinline)) void capture_elsewhere(struct UnwindThread* self, const void* frame,
                                                        struct UnwindStack* stack) {
  struct UnwindThread* const mine = self;  // the call changes the registers of its arguments
  uint64_t before;
  block_signals(&before);
  STORE_REGISTERS(mine->registers);
  mine->is_elsewhere = true;
  __asm__ volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %3, %%rsp\n\t"
      "call *%4\n\t"
      "mov %%rbx, %%rsp"
      : "+D"(self), "+S"(frame), "+d"(stack)
      : "r"((uintptr_t)(self->stack + sizeof self->stack) & ~(uintptr_t)63), "r"(capture_here)
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
        "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  mine->is_elsewhere = false;
  restore_signals(&before);
}

// A function of its own: the quick path's registers would take 272 bytes of a little stack.
static __attribute__((noinline)) void capture_with_room(struct UnwindThread* self, const void* frame,
                                                        struct UnwindStack* stack) {
  const int kept = unwind_capture_quickly(self, frame);
  if (__builtin_expect(kept >= 0, 1))
    *stack = (struct UnwindStack){kept, self->frames, self->is_cut, false};
  else
    capture_here(self, frame, stack);
}

void unwind_capture(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) {
  if (__builtin_expect(has_little_stack(self, frame), 0) && !sandbox_entered) {
    capture_elsewhere(self, frame, stack);
  } else {
    self->is_elsewhere = false;  // this may be a copy of a thread's memory that a fork made during its capture
    capture_with_room(self, frame, stack);
  }
}

const char* unwind_begin_process(struct StackShare* share, int frames_max) {
  enum { frames_without_slack = 64 };
  if (!rules_begin(share))
    return "the C library has neither _dl_find_object, as glibc from 2.35 on, nor musl's list of modules";
  memory_begin();
  unwind_limit = frames_max > 0 && frames_max < unwind_limit_max ? frames_max : unwind_limit_max;
  frames_dropped = unwind_limit > frames_without_slack ? unwind_limit / 4 : 0;
  return NULL;
}
