/// The quick path of a capture, which nearly all take. It stays on the thread's own stack. It goes by rules from rsp or
/// by frame pointers to a frame of the last stack; other words are unchanged. All other cases are in capture.c.
///
/// Most of its time would go into branches that the processor predicts wrongly, because the number of frames that go
/// and come differs from call to call. So frames are compared eight at a time and copied four at a time, whatever their
/// number is. Rules are looked up in a small table of the thread's own (`near`) that nearly always has them.
///
/// The files of a capture call each other in a circle: quick.h, step.h, walk.c, full.c and capture.c. The quick steps
/// are inline, and call a slow function of another file where a rule is missing. The slow functions continue with
/// the quick steps. A pointer to the slow functions would only hide this.
#pragma once

#include <emmintrin.h>
#include <stddef.h>

#include "preload/program/unwind/walk.h"

enum { quick_lanes = 8, copied_at_once = 4 };
static_assert(quick_lanes == (int)unwind_margin && (int)copied_at_once <= (int)unwind_margin,
              "frames beyond the ends of the arrays");

/// The result of arrive_quickly().
struct Arrival {
  struct Place place;
  int frame;      ///< of the last stack
  int first;      ///< of the frames stored
  uint32_t flag;  ///< of `frame`: by_rbp
  uint64_t code;  ///< of `frame`
};

static inline const uint32_t* places_from(const struct UnwindThread* self, long frame) {
  return (const uint32_t*)((const char*)self + offsetof(struct UnwindThread, places)) + frame;
}

static inline const uint64_t* codes_from(const struct UnwindThread* self, long frame) {
  return (const uint64_t*)((const char*)self + offsetof(struct UnwindThread, code)) + frame;
}

/// Finds a rule that `near` does not have. Returns NULL if it is not from rsp or rbp.
const struct UnwindRule* quick_find_slowly(struct UnwindThread* self, uint64_t key) UNWIND_HIDDEN;

static inline struct UnwindRule* quick_cell(struct UnwindThread* self, uint64_t key) {
  return &self->near[(key ^ key >> 8) & (unwind_near_max - 1)];
}

/// Eight places of the last stack.
struct PlaceWindow {
  __m128i inner, outer;
  uint32_t end;  ///< a place from here on lies outside of all
  int frame;     ///< of the outermost
};

static inline struct PlaceWindow window_at(const struct UnwindThread* self, int frame) {
  const uint32_t* const places = places_from(self, frame);
  const __m128i flag = _mm_set1_epi32(by_rbp);
  return (struct PlaceWindow){_mm_andnot_si128(flag, _mm_loadu_si128((const __m128i*)(places + 4))),
                              _mm_andnot_si128(flag, _mm_loadu_si128((const __m128i*)places)), (*places | by_rbp) + 1,
                              frame};
}

/// Two bits for the frame whose place is `here`, or 0.
static inline uint32_t window_match(const struct PlaceWindow* window, uint32_t here) {
  const __m128i wanted = _mm_set1_epi32((int)here);
  const __m128i same = _mm_packs_epi32(_mm_cmpeq_epi32(window->outer, wanted), _mm_cmpeq_epi32(window->inner, wanted));
  return (uint32_t)_mm_movemask_epi8(same);
}

/// Moves the window outwards until its outermost place is not inside of `here`. Returns false beyond the outermost
/// frame.
static inline bool window_move(const struct UnwindThread* self, struct PlaceWindow* window, uint32_t here) {
  while (window->end <= here) {
    if (window->frame <= 0) return false;
    *window = window_at(self, window->frame - quick_lanes);
  }
  return true;
}

/// The step by rbp in code with frame pointers: rbp is saved just below the return address, and points there. Returns
/// false for other code.
static inline bool step_by_frame_pointer(struct Place* place, uint64_t rule, uintptr_t* at) {
  enum { rbp_and_return_address = 16 };
  if (rule_kind(rule) != rule_from_rbp || rule_distance(rule) != rbp_and_return_address) return false;
  if (place->rbp_at != place->at - 8) return false;
  const uintptr_t rbp = *(const uintptr_t*)place->rbp_at;
  if ((rbp - place->at) >> code_bits != 0 || rbp == place->at || rbp % 8 != 0) return false;
  if (rule_slot(rule)) place->rbp_at = rbp + 8 * (rule_slot(rule) - 1);
  *at = rbp + 8;
  return true;
}

/// Walks to a frame of the last stack. Returns false if the quick path does not suffice.
__attribute__((always_inline)) static inline bool arrive_quickly(struct UnwindThread* self, const void* frame,
                                                                 struct Arrival* arrived) {
  const uintptr_t base = self->base, end = base + places_bytes;
  const int first_min = self->frames;  // else there is no room beside the last stack
  int first = unwind_frames_max;
  struct Place place = place_of_caller(frame);
  struct PlaceWindow window = window_at(self, self->frames - quick_lanes);
  uint32_t flag = 0;
  for (;;) {
    const uint32_t here = (uint32_t)((place.at - base) / 4);
    const struct UnwindRule* cell = quick_cell(self, place.key);
    if (__builtin_expect((cell->key ^ place.key) << (64 - code_bits) != 0, 0)) {
      cell = quick_find_slowly(self, place.key);
      if (!cell) return false;
    }
    uint32_t match = window_match(&window, here);
    if (__builtin_expect(window.end <= here, 0)) {
      if (!window_move(self, &window, here)) return false;
      match = window_match(&window, here);
    }
    const uint64_t code = cell->key, rule = cell->rule;
    if (match) {
      const int cursor = window.frame + __builtin_ctz(match) / 2;
      if (__builtin_expect(rule_of_code(self->code[cursor])->rule == rule, 1)) {
        *arrived = (struct Arrival){place, cursor, first, flag, code};
        const int stored = unwind_frames_max - first;
        return cursor + 1 + stored <= unwind_limit && first - (cursor + 1) >= stored + copied_at_once;
      }
    }
    if (__builtin_expect(first <= first_min, 0)) return false;
    self->code[--first] = code;
    self->places[first] = here | flag;
    uintptr_t at = place.at + rule_distance(rule);
    if (__builtin_expect(rule_kind(rule) == rule_from_rsp, 1)) {
      flag = 0;
      const uint64_t slot = rule_slot(rule), is_unchanged = (slot != 0) - (uint64_t)1;
      place.rbp_at = (place.rbp_at & is_unchanged) | ((place.at + 8 * slot) & ~is_unchanged);
    } else {
      if (!step_by_frame_pointer(&place, rule, &at)) return false;
      flag = by_rbp;
    }
    if (__builtin_expect(at >= end, 0)) return false;
    place.at = at;
    place.key = *(const uint64_t*)at;
    if (__builtin_expect(place.key - 1 >= code_mask, 0)) return false;
  }
}

/// Replaces the last stack from `arrived` on by the frames stored. Returns how many stay.
__attribute__((always_inline)) static inline int splice_quickly(struct UnwindThread* self,
                                                                const struct Arrival* arrived) {
  const int first = arrived->first, stored = unwind_frames_max - first, frame = arrived->frame;
  const uint64_t* const from_code = self->code + first;
  const uint32_t* const from_place = self->places + first;
  uint64_t* const code = self->code + frame;
  uint32_t* const place = self->places + frame;
  const bool is_same = *code == arrived->code;
  int same = 0;
  while (__builtin_expect(same < stored && frame + 1 + same < self->frames && code[same + 1] == from_code[same], 0))
    same++;
  *code = arrived->code;
  *place = (*place & ~(uint32_t)by_rbp) | arrived->flag;
  int i = 0;
  do {
    for (int k = 0; k < copied_at_once; k += 2)
      _mm_storeu_si128((__m128i*)(code + 1 + i + k), _mm_loadu_si128((const __m128i*)(from_code + i + k)));
    _mm_storeu_si128((__m128i*)(place + 1 + i), _mm_loadu_si128((const __m128i*)(from_place + i)));
  } while (__builtin_expect((i += copied_at_once) < stored, 0));
  self->frames = frame + 1 + stored;
  self->stepped += (uint64_t)stored;
  return is_same ? frame + 1 + same : frame;
}

/// Whether the words that frames outside of `arrived` need are unchanged, and where they were.
static inline bool has_same_words(const struct UnwindThread* self, const struct Arrival* arrived) {
  const uintptr_t begin = arrived->place.at, bytes = self->base + places_bytes - begin;
  for (int i = self->words - 1; i >= 0; i--) {
    const struct UnwindWord* word = &self->word[i];
    if (word->frame >= arrived->frame || word->from > arrived->frame) return false;
    if (word->at - begin >= bytes || *(const uint64_t*)word->at != word->value) return false;
  }
  const uint32_t outer = *places_from(self, arrived->frame - 1);
  if (__builtin_expect(!(outer & by_rbp), 1) || arrived->frame == 0) return true;
  const uintptr_t rbp_at = arrived->place.rbp_at;
  return rbp_at == begin - 8 && *(const uint64_t*)rbp_at == decode_place(self, outer) - 8;
}

/// Compares two frames: eight bytes of ones for each whose return address is unchanged. None is by_rbp.
static inline __m128i compare_two(uintptr_t base, const uint32_t* places, const uint64_t* codes) {
  const __m64* const outer = (const __m64*)(base + (uint64_t)places[0] * 4);
  const __m64* const inner = (const __m64*)(base + (uint64_t)places[1] * 4);
  const __m128 both = _mm_loadh_pi(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i*)outer)), inner);
  const __m128i differing = _mm_xor_si128(_mm_castps_si128(both), _mm_loadu_si128((const __m128i*)codes));
  return _mm_cmpeq_epi32(_mm_slli_epi64(differing, 64 - code_bits), _mm_setzero_si128());
}

/// The same for eight frames, in two bits each.
static inline uint32_t compare_lanes(uintptr_t base, const uint32_t* places, const uint64_t* codes) {
  const __m128i outer = _mm_packs_epi32(compare_two(base, places, codes), compare_two(base, places + 2, codes + 2));
  const __m128i inner =
      _mm_packs_epi32(compare_two(base, places + 4, codes + 4), compare_two(base, places + 6, codes + 6));
  return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(outer, inner));
}

static inline bool has_frame_pointers(const uint32_t* places) {
  const __m128i any =
      _mm_or_si128(_mm_loadu_si128((const __m128i*)places), _mm_loadu_si128((const __m128i*)(places + 4)));
  return _mm_movemask_ps(_mm_castsi128_ps(_mm_slli_epi32(any, 31))) != 0;
}

/// Replaces the return address of a frame of the last stack. Returns false if the frames outside of it follow by
/// another rule.
bool quick_replace_code(struct UnwindThread* self, int frame, uint64_t key) UNWIND_HIDDEN;

/// Compares the frames outside of `frame` with the stack. Returns the first whose place may have changed, or from where
/// on that is not known; or -1. `kept` is lowered to the first with another return address.
__attribute__((always_inline)) static inline int find_difference_quickly(struct UnwindThread* self, int frame,
                                                                         int* kept) {
  const uintptr_t base = self->base;
  for (int end = frame; end > 0; end -= quick_lanes) {
    const uint32_t* const places = places_from(self, end - quick_lanes);
    if (__builtin_expect(has_frame_pointers(places), 0)) return end - 1;
    uint32_t same = compare_lanes(base, places, codes_from(self, end - quick_lanes));
    same |= 0xffff >> 2 * (end < quick_lanes ? end : quick_lanes);
    while (__builtin_expect(same != 0xffff, 0)) {
      const int lane = (31 - __builtin_clz(~same & 0xffff)) / 2, differing = end - quick_lanes + lane;
      if (places[lane] == no_place) return differing;
      if (!quick_replace_code(self, differing, *(const uint64_t*)(base + (uint64_t)places[lane] * 4))) return differing;
      if (differing < *kept) *kept = differing;
      same |= (uint32_t)3 << 2 * lane;
    }
  }
  return -1;
}

/// Ends what unwind_capture_quickly() has begun: compares on from `changed`, or, if that is -1, modules have gone
/// meanwhile. Returns how many outer frames stay.
int quick_go_on(struct UnwindThread* self, const void* frame, struct Arrival arrived, int changed,
                int kept) UNWIND_HIDDEN;

/// Marks the stack as one that is being captured.
static inline void unwind_begin(struct UnwindThread* self, const void* frame) {
  unwind_set_busy(self, (uintptr_t)frame, ((const uintptr_t*)frame)[1]);
  self->busy_apart = 0;
  self->stray_captures = 0;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/// The quick path of unwind_capture(). The stack is then the last one, and has as many frames. Returns how many outer
/// frames stay, or -1 if nothing was done.
__attribute__((always_inline)) static inline int unwind_capture_quickly(struct UnwindThread* self, const void* frame) {
  struct Arrival arrived;
  const uint32_t epoch = __atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE);
  if (__builtin_expect(self->busy != 0 || (uintptr_t)frame - self->quick_begin >= self->quick_bytes, 0)) return -1;
  if (__builtin_expect(self->epoch != epoch, 0)) return -1;
  unwind_begin(self, frame);
  if (__builtin_expect(!arrive_quickly(self, frame, &arrived) || !has_same_words(self, &arrived), 0)) {
    unwind_set_busy(self, 0, 0);
    return -1;
  }
  int kept = splice_quickly(self, &arrived);
  const int changed = find_difference_quickly(self, arrived.frame, &kept);
  if (__builtin_expect(changed >= 0 || __atomic_load_n(&unwind_epoch, __ATOMIC_ACQUIRE) != epoch, 0))
    return quick_go_on(self, frame, arrived, changed, kept);
  return kept;
}
