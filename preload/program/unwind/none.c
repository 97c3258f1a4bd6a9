// Replaces all files of this folder on processors other than x86-64, whose stacks are not captured: the rules, and the
// comparison with the last stack, are of x86-64.
#include "preload/program/unwind/none.h"

int unwind_limit;
uint8_t unwind_extras;
uintptr_t unwind_loader_begin, unwind_loader_bytes;

const char* unwind_begin_process(struct StackShare* share, int frames_max) {
  (void)share;
  (void)frames_max;
  return "call stacks are recorded on x86-64 only";
}

// Nobody calls these: no thread has an UnwindThread.
void unwind_capture(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) {
  (void)self;
  (void)frame;
  *stack = (struct UnwindStack){.is_cut = true};
}
void unwind_capture_apart(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) {
  unwind_capture(self, frame, stack);
}

void unwind_forget_all(void) {}
void unwind_module_freed(const void* link_map) { (void)link_map; }
