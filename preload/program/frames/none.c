// Replaces all files of this folder and python_pool.c on processors other than x86-64, where no stacks are captured.
#include "preload/program/frames/frames.h"
#include "preload/program/pools/python_pool.h"

const size_t frames_thread_bytes = 1;

void frames_begin_process(struct InterpreterFrames* share, bool wanted) {
  (void)share;
  (void)wanted;
}
bool (*frames_found)(bool is_locked);
void python_pool_begin(void) {}
void python_pool_end(void) {}
void frames_end(void) {}
void frames_look(void) {}

// Nobody calls these: unwind_extras stays 0.
struct MixedStack frames_mix(struct MixedThread* mixed, const struct UnwindThread* native,
                             const struct UnwindStack* stack, const void* frame) {
  (void)mixed;
  (void)native;
  (void)stack;
  (void)frame;
  return (struct MixedStack){0, 0};
}
const uint32_t* frames_of(const struct MixedThread* mixed) {
  (void)mixed;
  return NULL;
}
