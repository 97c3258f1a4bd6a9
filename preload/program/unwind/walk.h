/// A capture: by rules to the first frame of the last stack, then the rest by comparing words.
///
///     number   0      1     2      3     4       5
///     before   main   run   parse  list  node                    frame 2 is arrived at: same address, same place,
///
///     now      main   run   parse  item  text    copy            and same rbp, if a frame outside of it needs it
///
/// The places of frames 1 and 0 and their addresses were computed before from rules and from words on the stack alone.
/// These words are the return addresses and, if a frame is found by rbp, the saved rbp. If all words are unchanged, so
/// are the frames. At the first difference the walk goes on by rules, from the frame inside of it. When it arrives at
/// the last stack again, the frames between are replaced, and the rest is compared.
///
/// A place is where a return address was loaded from, in units of 4 bytes from `base`, so bit 0 is free: "found by
/// rbp". The bit is set if rbp was saved just below the return address of the frame inside, and points just below this
/// one. This is so in all code with frame pointers. Any other saved rbp has an entry in `word`. A frame that is found
/// by something else has no_place: it is never compared, but walked each time.
#pragma once

#include "preload/program/unwind/step.h"

enum { by_rbp = 1, outside = INT32_MAX / 2 };
static const uint64_t code_mask = ((uint64_t)1 << code_bits) - 1, places_bytes = ((uint64_t)1 << 34) - 16;
/// Places above all others; plus 2, below all others. On the thread's own stack the words at both can be read.
static const uint32_t outside_places = 0xfffffffc, no_place = 0xfffffffe;

/// A walk by rules. Its frames are stored at the end of the last stack's arrays, which is free, in the same order.
struct Walk {
  struct UnwindThread* self;
  struct StackPart part;
  struct Place place;
  int first;       ///< of the frames stored, up to unwind_frames_max
  int first_min;   ///< where to end
  int first_word;  ///< the same in `word`
  int rbp_step;    ///< the step after which rbp_at was known, or -1: before the walk
  int rbp_from;    ///< the number of that frame then, or `outside`: inside of all
  uint32_t flag;   ///< of the frame at `place`: by_rbp
  bool has_place;
  bool is_ended, is_cut, is_limited, has_no_room;
};

static inline uint32_t encode_place(const struct UnwindThread* self, uintptr_t at) {
  const uint64_t distance = at - self->base;
  return distance < places_bytes ? (uint32_t)(distance / 4) : no_place;
}

static inline uintptr_t decode_place(const struct UnwindThread* self, uint32_t place) {
  return self->base + (uint64_t)(place & ~(uint32_t)by_rbp) * 4;
}

static inline int steps_of(const struct Walk* walk) { return unwind_frames_max - walk->first; }

/// Whether the callers of two frames at the same place are found in the same way: they are mostly two calls by the same
/// function.
static inline bool has_rule(uint64_t code, uint64_t rule) {
  return rule_of_code(code)->rule == rule && (rule_kind(rule) == rule_from_rsp || rule_kind(rule) == rule_from_rbp);
}

/// Stores the frame at `place` and goes to its caller. Returns false if there is none.
bool walk_on(struct Walk* walk) UNWIND_HIDDEN;

/// Walks until the frame at `place` is one of the last stack, `cursor` or outside of it, and returns its number, or -1
/// at the end. `floor`: the frames of the last stack that stay in any case.
int walk_to_last(struct Walk* walk, int cursor, int floor) UNWIND_HIDDEN;

/// Replaces the frames of the last stack inside of `frame`, up to `last`, by those stored. `kept` is lowered to the
/// number of outer frames that stay. Returns false if there is no room.
bool walk_splice(struct Walk* walk, int frame, int last, int* kept) UNWIND_HIDDEN;
