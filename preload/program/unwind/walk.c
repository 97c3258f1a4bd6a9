// Walks by rules to a frame of the last stack, and joins the frames walked with those that stay.
#include "preload/program/unwind/walk.h"

#include <string.h>

// Whether all places outside of `frame` were computed from the value that rbp has in it now.
static bool has_same_rbp(const struct Walk* walk, int frame) {
  const struct UnwindThread* self = walk->self;
  if (frame == 0) return true;
  const uint64_t rbp = *(const uint64_t*)walk->place.rbp_at;
  const uint32_t outer = self->places[frame - 1];
  if (outer & by_rbp && rbp != decode_place(self, outer) - 8) return false;
  for (int i = self->words - 1; i >= 0 && (self->word[i].frame >= frame || self->word[i].from > frame); i--) {
    if (self->word[i].frame < frame && self->word[i].value != rbp) return false;
  }
  return true;
}

// Remembers the word by which the frame at `place` was found by rbp. Returns false if it cannot be compared.
static bool note_rbp(struct Walk* walk, const struct Place* callee, bool has_callee_place) {
  struct UnwindThread* self = walk->self;
  const uint64_t rbp = *(const uint64_t*)callee->rbp_at;
  if (has_callee_place && callee->rbp_at == callee->at - 8 && walk->place.at == rbp + 8) {
    walk->flag = by_rbp;
    return true;
  }
  if (walk->first_word <= self->words) return false;
  self->word[--walk->first_word] = (struct UnwindWord){callee->rbp_at, rbp, steps_of(walk) - 1, walk->rbp_step};
  return true;
}

static inline bool end_walk(struct Walk* walk, bool is_cut) {
  walk->is_ended = true;
  walk->is_cut = is_cut;
  return false;
}

bool walk_on(struct Walk* walk) {
  struct UnwindThread* self = walk->self;
  const struct UnwindRule* entry = rule_find(walk->place.key);
  if (__builtin_expect(entry && rule_kind(entry->rule) == rule_jit, 0)) entry = rule_check_jit(entry);
  if (__builtin_expect(!entry, 0)) return end_walk(walk, true);
  const uint64_t rule = entry->rule;
  const uint32_t place = walk->has_place ? encode_place(self, walk->place.at) : no_place;
  const struct Place callee = walk->place;
  self->code[--walk->first] = (callee.key & code_mask) | (uint64_t)rule_index(entry) << code_bits;
  self->places[walk->first] = place != no_place ? place | walk->flag : no_place;
  walk->flag = 0;
  const enum Step how = step(self, &walk->part, &walk->place, rule);
  walk->has_place = how == step_by_rsp;
  if (__builtin_expect(how != step_by_rsp, 0)) {
    if (how == step_failed) return end_walk(walk, rule_kind(rule) != rule_outermost);
    if (how == step_by_rbp) walk->has_place = note_rbp(walk, &callee, place != no_place);
  }
  if (walk->place.rbp_at != callee.rbp_at) walk->rbp_step = steps_of(walk) - 1;
  if (__builtin_expect(is_code_address(walk->place.key & ~UNWIND_EXACT) && walk->place.key != 0, 1)) return true;
  return end_walk(walk, walk->place.key != 0);
}

// Walks on by rules from rsp alone, which nearly all functions have. It stops if the frame at `place` has the place of
// one of the last stack, or another rule, or if `first` arrives at `first_min`. Returns the first frame of the last
// stack that is not inside of it.
static inline int walk_by_rsp(struct Walk* walk, int cursor, int first_min) {
  struct UnwindThread* self = walk->self;
  const uintptr_t base = self->base, end = walk->part.end;
  struct Place place = walk->place;
  int first = walk->first, rbp_step = walk->rbp_step;
  uint32_t flag = walk->flag;
  for (;;) {
    const uint64_t distance = place.at - base;
    const uint32_t here = (uint32_t)(distance / 4);
    if (__builtin_expect(distance >= places_bytes, 0)) break;
    while (cursor >= 0 && (self->places[cursor] | by_rbp) + 1 <= here) cursor--;
    if (cursor >= 0 && (self->places[cursor] & ~(uint32_t)by_rbp) == here &&
        ((self->code[cursor] ^ place.key) & code_mask) == 0)
      break;
    const struct UnwindRule* entry = rule_find(place.key);
    const uint64_t rule = entry ? entry->rule : rule_unknown;
    const uintptr_t at = place.at + rule_distance(rule);
    if (__builtin_expect(rule_kind(rule) != rule_from_rsp || at >= end || first <= first_min, 0)) break;
    const uint64_t key = *(const uint64_t*)at;
    if (__builtin_expect(key == 0 || !is_code_address(key), 0)) break;
    first--;
    self->code[first] = place.key | (uint64_t)rule_index(entry) << code_bits;
    self->places[first] = here | flag;
    flag = 0;
    if (rule_slot(rule)) {
      place.rbp_at = place.at + 8 * rule_slot(rule);
      rbp_step = unwind_frames_max - 1 - first;
    }
    place.at = at;
    place.key = key;
  }
  walk->place = place;
  walk->first = first;
  walk->rbp_step = rbp_step;
  walk->flag = flag;
  return cursor;
}

int walk_to_last(struct Walk* walk, int cursor, int floor) {
  struct UnwindThread* self = walk->self;
  int first_min = floor > cursor ? floor : cursor + 1;
  if (first_min < walk->first_min) first_min = walk->first_min;
  for (;;) {
    if (walk->has_place) cursor = walk_by_rsp(walk, cursor, first_min);
    const uint32_t place = walk->has_place ? encode_place(self, walk->place.at) : no_place;
    if (__builtin_expect(place != no_place, 1)) {
      while (cursor >= 0 && (self->places[cursor] | by_rbp) + 1 <= place) cursor--;
      if (cursor >= 0 && (self->places[cursor] & ~(uint32_t)by_rbp) == place &&
          ((self->code[cursor] ^ walk->place.key) & code_mask) == 0 && has_same_rbp(walk, cursor))
        return cursor;
    }
    if (__builtin_expect(walk->first == walk->first_min, 0)) {
      walk->is_limited = true;
      end_walk(walk, true);
      return -1;
    }
    if (__builtin_expect(walk->first <= floor, 0)) {
      walk->has_no_room = true;
      return -1;
    }
    if (__builtin_expect(walk->first <= cursor + 1, 0)) {  // into frames that the walk has not arrived at
      unwind_forget(self);
      cursor = -1;
    }
    if (!walk_on(walk)) return -1;
  }
}

// Finds where the value of rbp is saved that frames outside of `frame`, at which the walk has arrived, need.
static void relocate_rbp(struct Walk* walk, int frame, int words, int from) {
  struct UnwindThread* self = walk->self;
  for (int i = words - 1; i >= 0 && self->word[i].from > frame; i--) {
    self->word[i].at = walk->place.rbp_at;
    self->word[i].from = from;
  }
}

// Whether the frame outside of the one at `place` is found by rbp, but rbp is not saved where bit 0 states.
static bool has_moved_rbp(const struct Walk* walk, int frame) {
  return frame > 0 && walk->self->places[frame - 1] & by_rbp && walk->place.rbp_at != walk->place.at - 8;
}

// Counts the frames from `frame` on that are the same among those stored and the `replaced` ones of the last stack.
// Frames of a large stack that the stored ones have overwritten count as different.
static int count_equal(const struct Walk* walk, int frame, int replaced) {
  const struct UnwindThread* self = walk->self;
  const int stored = steps_of(walk), intact = walk->first - frame;
  int most = stored < replaced ? stored : replaced;
  if (most > intact) most = intact;
  int equal = 0;
  while (equal < most && self->code[frame + equal] == self->code[walk->first + equal]) equal++;
  return equal;
}

// Joins the words of the frames stored with those that stay: of frames outside of `frame`, and of `last` and inside of
// it.
static __attribute__((noinline)) bool splice_words(struct Walk* walk, int frame, int last, int from, int shift) {
  struct UnwindThread* self = walk->self;
  const int added = unwind_words_max - walk->first_word, end = frame + steps_of(walk);
  int outer = self->words, inner = self->words;
  while (inner > 0 && self->word[inner - 1].frame >= last) inner--;
  while (outer > 0 && self->word[outer - 1].frame >= frame) outer--;
  if (outer > inner) outer = inner;
  const int inner_words = self->words - inner;
  relocate_rbp(walk, frame, outer, from);
  if (has_moved_rbp(walk, frame)) {
    // One word more: there is room for it if there is for all.
    if (outer + 1 + added + inner_words > walk->first_word || (inner_words && outer + 1 > inner)) {
      self->places[frame - 1] = no_place;
    } else {
      self->places[frame - 1] &= ~(uint32_t)by_rbp;
      self->word[outer++] =
          (struct UnwindWord){walk->place.rbp_at, *(const uint64_t*)walk->place.rbp_at, frame - 1, from};
    }
  }
  if (inner_words && outer + added + inner_words > walk->first_word) return false;
  memmove(&self->word[outer + added], &self->word[inner], (size_t)inner_words * sizeof *self->word);
  memmove(&self->word[outer], &self->word[walk->first_word], (size_t)added * sizeof *self->word);
  self->words = outer + added + inner_words;
  for (int i = outer; i < outer + added; i++) {
    struct UnwindWord* word = &self->word[i];
    word->frame = end - word->frame - 1;
    word->from = word->from >= 0 ? end - word->from : walk->rbp_from < outside ? walk->rbp_from + shift : outside;
  }
  for (int i = outer + added; shift && i < self->words; i++) {
    self->word[i].frame += shift;
    if (self->word[i].from < outside) self->word[i].from += shift;
  }
  return true;
}

bool walk_splice(struct Walk* walk, int frame, int last, int* kept) {
  struct UnwindThread* self = walk->self;
  const int stored = steps_of(walk), replaced = last - frame, inner = self->frames - 1 - last;
  const int shift = stored - replaced, equal = count_equal(walk, frame + 1, replaced);
  const int from = walk->rbp_step >= 0        ? frame + stored - walk->rbp_step
                   : walk->rbp_from < outside ? walk->rbp_from + shift
                                              : outside;
  if (inner && shift && frame + 1 + stored + inner > walk->first) return false;
  const bool has_words = self->words > 0 || walk->first_word < unwind_words_max || has_moved_rbp(walk, frame);
  if (has_words && !splice_words(walk, frame, last, from, shift)) return false;
  if ((shift || equal < stored) && frame + 1 + equal < *kept) *kept = frame + 1 + equal;
  if (inner && shift) {
    memmove(&self->code[frame + 1 + stored], &self->code[last + 1], (size_t)inner * sizeof *self->code);
    memmove(&self->places[frame + 1 + stored], &self->places[last + 1], (size_t)inner * sizeof *self->places);
  }
  for (int i = 0; i < stored; i++) {
    self->code[frame + 1 + i] = self->code[walk->first + i];
    self->places[frame + 1 + i] = self->places[walk->first + i];
  }
  if (frame >= 0) self->places[frame] = (self->places[frame] & ~(uint32_t)by_rbp) | walk->flag;
  self->frames += shift;
  self->stepped += (uint64_t)stored;
  walk->rbp_from = from;
  walk->rbp_step = -1;
  walk->first = unwind_frames_max;
  walk->first_word = unwind_words_max;
  return true;
}
