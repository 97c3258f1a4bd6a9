// Compares a thread's Python frames with those of the capture before (chain.h).
#include "preload/program/frames/chain.h"

#include <string.h>

#include "preload/program/frames/names.h"
#include "preload/program/frames/python.h"

enum { new_frames_max = 16, searched_max = 8 };

static uint32_t find_index(struct Chain* chain, uintptr_t code, uintptr_t instruction) {
  const uint64_t key = python_line_key(code, instruction);
  struct NearLine* const near = &chain->near[(key >> 1 ^ key >> 9 ^ key >> 17) & (chain_near_max - 1)];
  if (near->key == key) return near->index;
  const uint32_t index = names_find(code, instruction);
  near->key = 0;  // a signal handler may leave this function by longjmp
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  near->index = index;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  near->key = key;
  return index;
}

// Where to find what changes with a frame's line. A loop keeps these in registers.
struct LineOffsets {
  uintptr_t instruction, is_entry;
};
static inline struct LineOffsets line_offsets(void) {
  return (struct LineOffsets){python.instruction, python.is_entry};
}

// An instruction is at an even address, so that its lowest bit is free.
__attribute__((always_inline)) static inline uintptr_t line_of(uintptr_t frame, enum PythonLayout layout,
                                                               struct LineOffsets at) {
  if (layout <= python_cframes) return *(const volatile uint32_t*)(frame + at.instruction);
  const uintptr_t instruction = python_word(frame + at.instruction);
  return layout == python_entries ? instruction | *(const volatile uint8_t*)(frame + at.is_entry) : instruction;
}

// Stores the frame. Returns false if it has only moved to another instruction of the same line.
static bool remember(struct Chain* chain, int number, uintptr_t frame) {
  struct PythonFrame* const entry = &chain->frame[number];
  struct PlacedFrame* const placed = &chain->placed[number];
  const bool begins_run = number >= python.base_frames && python_begins_run(frame);
  const uintptr_t code = python_is_shim(frame) ? 0 : python_code(frame);
  const uint32_t index = code ? find_index(chain, code, python_instruction(frame)) : 0;
  const bool is_other = placed->frame != frame || entry->index != index || entry->begins_run != begins_run;
  *placed = (struct PlacedFrame){frame, line_of(frame, python.layout, line_offsets())};
  *entry = (struct PythonFrame){code, index, begins_run};
  return is_other;
}

// Whether the frame, which is where it was, is at the same line in the same code. An instruction lies in its code
// object, whose death is known.
__attribute__((always_inline)) static inline bool is_same(const struct Chain* chain, const struct PlacedFrame* placed,
                                                          enum PythonLayout layout, struct LineOffsets at) {
  if (line_of(placed->frame, layout, at) != placed->line) return false;
  return layout > python_cframes || python_code(placed->frame) == chain->frame[placed - chain->placed].code;
}

// Follows the whole chain.
static __attribute__((noinline)) int walk_all(struct Chain* chain, uintptr_t innermost) {
  int frames = 0, first;
  for (uintptr_t frame = innermost; frame; frame = python_word(frame + python.previous))
    if (frames++ == chain_frames_max) return chain->frames = 0, -1;
  first = frames < chain->frames ? frames : chain->frames;
  uintptr_t frame = innermost;
  for (int number = frames - 1; number >= 0; number--, frame = python_word(frame + python.previous)) {
    const bool is_there = number < chain->frames && chain->placed[number].frame == frame;
    if (is_there && is_same(chain, &chain->placed[number], python.layout, line_offsets())) continue;
    const bool is_other = remember(chain, number, frame);
    if (number < first && (is_other || !is_there)) first = number;
  }
  chain->frames = frames;
  return first;
}

// Remembers a frame that has moved on. Returns the outermost frame that is on another line.
static __attribute__((noinline, cold)) int remember_moved(struct Chain* chain, const struct PlacedFrame* placed,
                                                          int first) {
  const int number = (int)(placed - chain->placed);
  return remember(chain, number, placed->frame) ? number : first;
}

// Compares the frames from `number` outwards, until one has another caller: then `is_broken` is set. Returns the
// outermost that is on another line. A function for each layout, so that the loop has no branches for others.
__attribute__((always_inline)) static inline int compare(struct Chain* chain, int number, enum PythonLayout layout,
                                                         bool* is_broken) {
  const struct PlacedFrame* const outermost = chain->placed;
  const uintptr_t previous = python.previous;
  const struct LineOffsets offsets = line_offsets();
  int first = number + 1;
  *is_broken = true;
  for (const struct PlacedFrame* at = &outermost[number]; at > outermost; at--) {
    if (!is_same(chain, at, layout, offsets)) first = remember_moved(chain, at, first);
    if (__builtin_expect(python_word(at->frame + previous) != at[-1].frame, 0)) return first;
  }
  if (!is_same(chain, outermost, layout, offsets)) first = remember_moved(chain, outermost, first);
  *is_broken = python_word(outermost->frame + previous) != 0;
  return first;
}

static inline int compare_as_laid_out(struct Chain* chain, int number, bool* is_broken) {
  if (python.layout >= python_shims) return compare(chain, number, python_shims_alone, is_broken);
  if (python.layout == python_entries) return compare(chain, number, python_entries, is_broken);
  return compare(chain, number, python_cframes, is_broken);
}

int chain_capture(struct Chain* chain, uintptr_t innermost) {
  const struct PlacedFrame* const all = chain->placed;
  const uint32_t epoch = __atomic_load_n(&names_epoch, __ATOMIC_ACQUIRE);
  if (__builtin_expect(chain->epoch != epoch, 0)) {
    chain->frames = 0;
    memset(chain->near, 0, sizeof chain->near);
    chain->epoch = epoch;
  }
  const int before = chain->frames;
  uintptr_t added[new_frames_max], frame = innermost;
  int count = 0, met = before - 1;
  for (;; frame = python_word(frame + python.previous)) {
    if (!frame) return walk_all(chain, innermost);
    const int last = met < searched_max ? 0 : met - searched_max;
    int number = met;
    while (number >= last && all[number].frame != frame) number--;
    if (number >= last) {
      met = number;
      break;
    }
    if (count == new_frames_max) return walk_all(chain, innermost);
    added[count++] = frame;
  }
  const int frames = met + 1 + count;
  if (frames > chain_frames_max) return walk_all(chain, innermost);
  bool is_broken;
  const int first = compare_as_laid_out(chain, met, &is_broken);
  if (__builtin_expect(is_broken, 0)) {
    const int kept = walk_all(chain, innermost);
    return kept < first ? kept : first;
  }
  for (int number = met + 1; count; number++) remember(chain, number, added[--count]);
  chain->frames = frames;
  return first;
}
