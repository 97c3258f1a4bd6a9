// Puts runs of Python frames among the native ones (frames.h), from the lower of the two first differences on.
#include <string.h>

#include "preload/program/frames/chain.h"
#include "preload/program/frames/check.h"
#include "preload/program/frames/frames.h"
#include "preload/program/frames/names.h"
#include "preload/program/frames/python.h"
#include "preload/program/tracing.h"
#include "preload/program/unwind/modules.h"
#include "preload/program/unwind/walk.h"

enum { mixed_frames_max = (1 << stack_count_bits) - 1, checks_max = 64, empty_max = 64, unplaced_max = 32 };

// Python frames that one activation of the loop executes.
struct Run {
  int32_t first;   // of its frames in the chain
  int32_t native;  // the loop's frame
};

struct MixedThread {
  struct Chain chain;
  int32_t runs;
  bool is_by_cframes;  // place_by_cframes() has found the runs
  struct Run run[chain_frames_max];
  uint32_t at[unwind_frames_max + 1];  // of each native frame: its first mixed one; after the last, all
  uint32_t mixed[mixed_frames_max + unwind_margin];
};

const size_t frames_thread_bytes = sizeof(struct MixedThread);

bool (*frames_found)(bool is_locked);
static struct InterpreterFrames* share;
static const char* given_up_for;
static bool is_wanted, is_served;
static int checks_left, empty_seen, unplaced_seen;
static uint32_t looking;

const uint32_t* frames_of(const struct MixedThread* mixed) { return mixed->mixed; }

static void set_extra(uint8_t extra, bool on) {
  if (on)
    __atomic_fetch_or(&unwind_extras, extra, __ATOMIC_SEQ_CST);
  else
    __atomic_fetch_and(&unwind_extras, (uint8_t)~extra, __ATOMIC_SEQ_CST);
}

static void report_given_up(void) {
  const bool lacks_pool = __atomic_exchange_n(&frames_found, NULL, __ATOMIC_ACQ_REL) && !is_served;
  write_message(given_up_for,
                lacks_pool ? "; stacks have native frames only, and the pool of Python is not recorded"
                           : "; stacks have native frames only",
                0);
}

static void give_up(const char* fault) {
  set_extra(unwind_has_interpreter, false);
  is_wanted = false;
  if (python_symbols.runtime) names_end();
  const char* before = NULL;
  if (__atomic_compare_exchange_n(&given_up_for, &before, fault, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    report_given_up();
}

static void begin_names(void) {
  if (!names_begin(share)) {
    give_up("there is no memory for Python frames");
    return;
  }
  names_watch_code();
  bool (*const found)(bool) = __atomic_load_n(&frames_found, __ATOMIC_ACQUIRE);
  if (found && found(false)) is_served = true;
  set_extra(unwind_has_interpreter, true);
}

void frames_begin_process(struct InterpreterFrames* of_process, bool wanted) {
  share = of_process;
  is_wanted = wanted && !given_up_for;
  is_served = false;
  looking = 0;
  if (wanted && given_up_for && tracing.is_attached) report_given_up();  // of an earlier recording
  if (!is_wanted) return;
  if (python_symbols.runtime)  // it was there before
    begin_names();
  else
    set_extra(unwind_met_module, true);
}

void frames_end(void) {
  set_extra(unwind_has_interpreter | unwind_met_module, false);
  if (python_symbols.runtime) names_end();
}

static void begin_python(uintptr_t address) {
  bool is_python;
  const char* const fault = python_find(address, &is_python);
  if (!is_python) return;
  checks_left = checks_max;
  empty_seen = unplaced_seen = 0;
  if (fault)
    give_up(fault);
  else
    begin_names();
}

static void end_unloaded_python(void) {
  struct LoadedModule module;
  if (!python_symbols.runtime || module_find((uintptr_t)python_symbols.runtime, &module)) return;
  set_extra(unwind_has_interpreter, false);
  python_symbols.runtime = NULL;
  unwind_first_module();  // a second Python may have been passed by
}

// A later recording meets each module again.
static bool is_of_found_python(uintptr_t address) {
  struct LoadedModule module;
  const uintptr_t runtime = (uintptr_t)python_symbols.runtime;
  return module_find(address, &module) && runtime - module.begin < module.end - module.begin;
}

static void report_other_python(void) {
  static bool is_reported;
  if (is_reported) return;
  is_reported = true;
  write_message("the process has another Python", ", whose stacks have native frames only", 0);
}

// One thread looks; for the others there is none yet.
void frames_look(void) {
  if (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE)) return;
  set_extra(unwind_met_module | unwind_lost_module, false);
  end_unloaded_python();
  uintptr_t address;
  while (is_wanted && (address = unwind_next_module()) != 0) {
    if (!python_symbols.runtime)
      begin_python(address);
    else if (!is_of_found_python(address) && python_is_in(address))
      report_other_python();
  }
  __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

static bool is_loop(uint64_t code) {
  return (code & code_mask) - python_symbols.loop_begin < python_symbols.loop_bytes;
}

static uintptr_t place_of(const struct UnwindThread* native, int frame) {
  return native->places[frame] == no_place ? 0 : decode_place(native, native->places[frame]);
}

// The anchors of runs without one of their own, the innermost first: CFrames.
struct Anchors {
  uintptr_t cframe;
  int run;  // whose anchor that is
};

// The anchor of run `number`. To be asked for from the innermost run outwards.
static uintptr_t anchor_of(const struct MixedThread* mixed, struct Anchors* at, int number) {
  if (python.layout >= python_shims) return mixed->chain.placed[mixed->run[number].first].frame;
  for (; at->cframe && at->run > number; at->run--) at->cframe = python_word(at->cframe + python.cframe_previous);
  return at->cframe;
}

// Places the runs from `from` on among the native frames from `frame` on. Walks from the innermost of both.
static bool place_by_anchors(struct MixedThread* mixed, const struct UnwindThread* native, int from, int frame,
                             uintptr_t state) {
  struct Anchors at = {0, mixed->runs - 1};
  if (python.thread_cframe && state) at.cframe = python_cframe(state);
  int inner = native->frames - 1;
  for (int number = mixed->runs - 1; number >= from; number--) {
    const uintptr_t anchor = anchor_of(mixed, &at, number);
    // The loop's frame is the innermost whose return address lies below the anchor, as those of all frames inside do.
    while (inner > frame && place_of(native, inner - 1) != 0 && place_of(native, inner - 1) < anchor) inner--;
    if (inner < frame || place_of(native, inner) == 0 || place_of(native, inner) > anchor) return false;
    if (inner > 0 && place_of(native, inner - 1) <= anchor) return false;
    mixed->run[number].native = inner--;
  }
  return true;
}

// The same where each loop executes one frame.
static bool place_by_count(struct MixedThread* mixed, const struct UnwindThread* native, int from, int frame) {
  int number = from;
  for (; frame < native->frames; frame++) {
    if (!is_loop(native->code[frame])) continue;
    if (number == mixed->runs) return false;
    mixed->run[number++].native = frame;
  }
  return number == mixed->runs;
}

// Places all runs of 3.11 anew, by the frame of each CFrame. At a cancellation, an exception is thrown into a coroutine
// and on into the inner one that it waits for (_gen_throw). Meanwhile the outer frame is in the chain without a loop,
// although it has is_entry. It then belongs to the run outside of it.
static bool place_by_cframes(struct MixedThread* mixed, const struct UnwindThread* native, uintptr_t state) {
  const struct Chain* const chain = &mixed->chain;
  int first = chain->frames, runs = 0;
  for (uintptr_t cframe = python_cframe(state); cframe && first > 0; runs++) {
    cframe = python_word(cframe + python.cframe_previous);
    const uintptr_t caller = cframe ? python_word(cframe + python.cframe_frame) : 0;
    int number = first - 1;
    while (number > 0 && chain->placed[number - 1].frame != caller) number--;
    mixed->run[chain_frames_max - 1 - runs].first = first = number;
  }
  memmove(mixed->run, &mixed->run[chain_frames_max - runs], (size_t)runs * sizeof *mixed->run);
  mixed->runs = runs;
  return first == 0 && place_by_anchors(mixed, native, 0, 0, state);
}

// The runs of a stack that are as in the one before, and what was after them.
struct KeptRuns {
  int count;
  int end;     // of the last one in the chain before
  int native;  // the loop of the first run that was dropped, or native_kept
};

// Drops the runs whose loop or first frame is not as before, and finds those of the chain from there on.
static struct KeptRuns find_runs(struct MixedThread* mixed, int first, int before, int native_kept) {
  const struct Chain* const chain = &mixed->chain;
  int runs = mixed->runs, from = first;
  struct KeptRuns kept = {.end = before, .native = native_kept};
  while (runs > 0 && (mixed->run[runs - 1].first >= first || mixed->run[runs - 1].native >= native_kept)) {
    const struct Run* const dropped = &mixed->run[--runs];
    kept.end = dropped->first;
    if (dropped->native < kept.native) kept.native = dropped->native;
    if (dropped->first < from) from = dropped->first;
  }
  kept.count = runs;
  for (int number = from; number < chain->frames; number++)
    if (chain->frame[number].begins_run) mixed->run[runs++].first = number;
  mixed->runs = runs;
  return kept;
}

static inline int end_of_run(const struct MixedThread* mixed, int number) {
  return number + 1 < mixed->runs ? mixed->run[number + 1].first : mixed->chain.frames;
}

// Writes the frames of a run from `number` of the chain on. Returns how many mixed frames there are then.
static inline uint32_t write_run(struct MixedThread* mixed, int run, int number, uint32_t frames) {
  const int end = end_of_run(mixed, run);
  for (; number < end && frames < mixed_frames_max; number++) {
    mixed->mixed[frames] = mixed->chain.frame[number].index;
    frames += mixed->mixed[frames] != 0;
  }
  return frames;
}

// Writes the mixed frames from native frame `frame` on, where run `run` is the next. A loop without frames stays.
static uint32_t write_frames(struct MixedThread* mixed, const struct UnwindThread* native, int frame, int run,
                             uint32_t frames) {
  for (; frame < native->frames; frame++) {
    mixed->at[frame] = frames;
    if (run < mixed->runs && mixed->run[run].native == frame)
      frames = write_run(mixed, run, mixed->run[run].first, frames), run++;
    if (frames == mixed->at[frame] && frames < mixed_frames_max)
      mixed->mixed[frames++] = unwind_frame_of_last(native, frame);
  }
  mixed->at[frame] = frames;
  return frames;
}

// The native frames alone.
static struct MixedStack copy_native(struct MixedThread* mixed, const struct UnwindThread* native, int native_kept) {
  const int kept = mixed->runs == 0 && mixed->chain.frames == 0 ? native_kept : 0;
  chain_forget(&mixed->chain);
  mixed->runs = 0;
  return (struct MixedStack){(uint32_t)kept, write_frames(mixed, native, kept, 0, (uint32_t)kept)};
}

static struct MixedStack copy_unknown(struct MixedThread* mixed, const struct UnwindThread* native) {
  __atomic_fetch_add(&share->unplaced, 1, __ATOMIC_RELAXED);
  return copy_native(mixed, native, 0);
}

// A stack that is too deep to be whole shows nothing about the offsets.
static struct MixedStack copy_unplaced(struct MixedThread* mixed, const struct UnwindThread* native) {
  if (checks_left > 0 && !native->is_limited && ++unplaced_seen == unplaced_max)
    give_up("the Python frames have no places among native ones");
  return copy_unknown(mixed, native);
}

// Whether a loop inside of all placed runs executes frames that are not in the chain. Up to 3.11 a sub-interpreter that
// one thread has made and another one runs is such a case: nothing says which thread has its state.
static bool has_hidden_frames(const struct MixedThread* mixed, const struct UnwindThread* native, uintptr_t state) {
  if (python.layout > python_entries || python_symbols.current_state() == state) return false;
  const int last = mixed->runs > 0 ? mixed->run[mixed->runs - 1].native : -1;
  for (int frame = native->frames - 1; frame > last; frame--)
    if (is_loop(native->code[frame])) return true;
  return false;
}

// Mixes from the first differences on: frame `first` of the chain, which had `before` frames, and native frame
// `native_kept`.
static struct MixedStack mix(struct MixedThread* mixed, const struct UnwindThread* native, int native_kept, int first,
                             int before, uintptr_t state) {
  const bool is_as_before = first == before && first == mixed->chain.frames && native_kept == native->frames;
  const bool are_runs_there = mixed->runs > 0 && mixed->run[mixed->runs - 1].native < native_kept;
  if (is_as_before && are_runs_there && !has_hidden_frames(mixed, native, state))
    return (struct MixedStack){mixed->at[native_kept], mixed->at[native_kept]};
  mixed->is_by_cframes = false;
  struct KeptRuns kept = find_runs(mixed, first, before, native_kept);
  const struct Run* last = kept.count ? &mixed->run[kept.count - 1] : NULL;
  const int from = last ? last->native + 1 : 0;
  const bool has_runs =
      mixed->chain.frames <= python.base_frames || (mixed->runs > 0 && mixed->run[0].first == python.base_frames);
  bool is_placed =
      has_runs && (python.layout == python_counted ? place_by_count(mixed, native, kept.count, from)
                                                   : place_by_anchors(mixed, native, kept.count, from, state));
  if (!is_placed && python.layout == python_entries && state && mixed->chain.frames > 0) {
    is_placed = mixed->is_by_cframes = place_by_cframes(mixed, native, state);
    kept = (struct KeptRuns){0};
    last = NULL;
  }
  if (!is_placed) return copy_unplaced(mixed, native);
  if (has_hidden_frames(mixed, native, state)) return copy_unknown(mixed, native);
  int start = kept.native;
  uint32_t begin, frames;
  if (last && (first < kept.end || first < end_of_run(mixed, kept.count - 1))) {  // it has other frames from there on
    const bool has_shim = mixed->chain.frame[last->first].index == 0;
    start = last->native;
    begin = mixed->at[start] + (uint32_t)(first - last->first) - has_shim;
    frames = write_run(mixed, kept.count - 1, first, begin);
    if (frames == mixed->at[start]) mixed->mixed[frames++] = unwind_frame_of_last(native, start);
    start++;
  } else {
    if (kept.count < mixed->runs && mixed->run[kept.count].native < start) start = mixed->run[kept.count].native;
    begin = frames = mixed->at[start];
  }
  frames = write_frames(mixed, native, start, kept.count, frames);
  if (frames == mixed_frames_max) return copy_unplaced(mixed, native);
  return (struct MixedStack){begin, frames};
}

static bool has_loop(const struct UnwindThread* native) {
  for (int frame = 0; frame < native->frames; frame++)
    if (is_loop(native->code[frame])) return true;
  return false;
}

// Checks what the first stacks lead to. Returns false if it is not what it should be.
static bool is_sound(const struct UnwindThread* native, uintptr_t thread) {
  uintptr_t state;
  const char* fault = check_state(&state);
  if (!fault && state) fault = check_chain(state, thread);
  const bool is_empty = !fault && (!state || python_is_idle(python_innermost(state)));
  if (is_empty && has_loop(native) && ++empty_seen == empty_max) fault = "Python runs, but has no frames";
  if (!fault && !is_empty) __atomic_fetch_sub(&checks_left, 1, __ATOMIC_RELAXED);
  if (fault) give_up(fault);
  return !fault;
}

#ifdef CMT_CHECK_FRAMES
// Mixes the same stack from nothing, with all names read anew, and stops the program at a difference. For
// bench/python.
static void check_against_fresh(const struct MixedThread* mixed, struct MixedStack got,
                                const struct UnwindThread* native, uintptr_t state) {
  static __thread struct MixedThread* fresh;
  if (!fresh && !(fresh = sys_map_quietly(sizeof *fresh))) return;
  const uintptr_t innermost = state ? python_innermost(state) : 0;
  chain_forget(&fresh->chain);
  memset(fresh->chain.near, 0, sizeof fresh->chain.near);
  fresh->runs = 0;
  fresh->at[0] = 0;
  if (innermost && chain_capture(&fresh->chain, innermost) < 0) return;
  for (int i = 0; i < fresh->chain.frames; i++) {
    const struct PythonFrame* const frame = &fresh->chain.frame[i];
    const uintptr_t instruction = python_instruction(fresh->chain.placed[i].frame);
    if (frame->index && !names_are_right(frame->code, instruction, frame->index)) __builtin_trap();
  }
  const struct MixedStack wanted = mix(fresh, native, 0, 0, 0, state);
  if (got.frames != wanted.frames || memcmp(mixed->mixed, fresh->mixed, got.frames * sizeof *mixed->mixed) != 0)
    __builtin_trap();
}
#else
#define check_against_fresh(...) ((void)0)
#endif

struct MixedStack frames_mix(struct MixedThread* mixed, const struct UnwindThread* native,
                             const struct UnwindStack* stack, const void* frame) {
  const uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
  if (__builtin_expect(stack->kept == 0, 0)) {
    chain_forget(&mixed->chain);
    mixed->runs = 0;
    mixed->at[0] = 0;
  }
  const bool is_own = (uintptr_t)frame - native->own_begin < native->own_end - native->own_begin;
  if (__builtin_expect(!is_own, 0)) return copy_native(mixed, native, stack->kept);
  if (__builtin_expect(checks_left > 0, 0) && !is_sound(native, thread)) return copy_native(mixed, native, stack->kept);
  const uintptr_t state = python_own_state(thread), innermost = state ? python_innermost(state) : 0;
  bool (*const found)(bool) = __atomic_load_n(&frames_found, __ATOMIC_ACQUIRE);
  if (__builtin_expect(found != NULL, 0) && state && found(python_is_locked(state))) is_served = true;
  const int before = mixed->chain.frames;
  if (!innermost && before == 0 && mixed->runs == 0) return copy_native(mixed, native, stack->kept);
  int first = 0;
  if (innermost)
    first = chain_capture(&mixed->chain, innermost);
  else
    chain_forget(&mixed->chain);
  if (__builtin_expect(first < 0, 0)) return copy_unknown(mixed, native);
  const bool is_anew = mixed->is_by_cframes;  // the same frames may have loops of their own now
  const struct MixedStack result = mix(mixed, native, is_anew ? 0 : stack->kept, is_anew ? 0 : first, before, state);
  check_against_fresh(mixed, result, native, state);
  return result;
}
