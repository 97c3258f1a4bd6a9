// Compares a thread's Python frames with those of the capture before (chain.h).
#include "preload/program/frames/chain.h"

#include <string.h>

#include "preload/program/frames/names.h"
#include "preload/program/frames/python.h"

enum { new_frames_max = 16, searched_max = 8 };

static uint32_t find_index(struct Chain* chain, uintptr_t code, uintptr_t instruction) {
  const uint64_t key = python_has_objects() ? (uint64_t)code << 16 ^ instruction : instruction;
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

static void remember(struct Chain* chain, int number, uintptr_t frame) {
  struct PythonFrame* const entry = &chain->frame[number];
  const uintptr_t instruction = python_instruction(frame);
  const bool is_shim = python_is_shim(frame);
  entry->frame = frame;
  entry->instruction = instruction;
  entry->code = is_shim ? 0 : python_code(frame);
  entry->begins_run = python_begins_run(frame);
  entry->index = is_shim ? 0 : find_index(chain, entry->code, instruction);
}

// Whether the frame, which is where it was, is at the same line in the same code. An instruction lies in its code
// object, whose death is known.
static inline bool is_same(const struct PythonFrame* entry) {
  const uintptr_t frame = entry->frame;
  if (python_instruction(frame) != entry->instruction) return false;
  if (python.layout == python_entries) return python_begins_run(frame) == entry->begins_run;
  return !python_has_objects() || python_code(frame) == entry->code;
}

// Follows the whole chain.
static __attribute__((noinline)) int walk_all(struct Chain* chain, uintptr_t innermost) {
  int frames = 0, first;
  for (uintptr_t frame = innermost; frame; frame = python_word(frame + python.previous))
    if (frames++ == chain_frames_max) return chain->frames = 0, -1;
  first = frames < chain->frames ? frames : chain->frames;
  uintptr_t frame = innermost;
  for (int number = frames - 1; number >= 0; number--, frame = python_word(frame + python.previous)) {
    const bool is_known =
        number < chain->frames && chain->frame[number].frame == frame && is_same(&chain->frame[number]);
    if (is_known) continue;
    remember(chain, number, frame);
    if (number < first) first = number;
  }
  chain->frames = frames;
  return first;
}

int chain_capture(struct Chain* chain, uintptr_t innermost) {
  struct PythonFrame* const all = chain->frame;
  const uint32_t epoch = __atomic_load_n(&names_epoch, __ATOMIC_ACQUIRE);
  if (__builtin_expect(chain->epoch != epoch, 0)) {
    chain->frames = 0;
    memset(chain->near, 0, sizeof chain->near);
    chain->epoch = epoch;
  }
  uintptr_t added[new_frames_max], frame = innermost;
  int count = 0, met = chain->frames - 1;
  for (;; frame = python_word(frame + python.previous)) {
    if (!frame) return walk_all(chain, innermost);
    int number = met;
    const int last = met < searched_max ? 0 : met - searched_max;
    while (number >= last && all[number].frame != frame) number--;
    if (number >= last && number >= 0) {
      met = number;
      break;
    }
    if (count == new_frames_max) return walk_all(chain, innermost);
    added[count++] = frame;
  }
  int first = met + 1;
  const uint16_t previous = python.previous;
  for (int number = met; number >= 0; number--) {
    if (__builtin_expect(!is_same(&all[number]), 0)) {
      remember(chain, number, all[number].frame);
      first = number;
    }
    const uintptr_t outer = number ? all[number - 1].frame : 0;
    if (__builtin_expect(python_word(all[number].frame + previous) != outer, 0)) {
      const int kept = walk_all(chain, innermost);
      return kept < first ? kept : first;
    }
  }
  const int frames = met + 1 + count;
  if (frames > chain_frames_max) return walk_all(chain, innermost);
  for (int number = met + 1; count; number++) remember(chain, number, added[--count]);
  chain->frames = frames;
  return first;
}
