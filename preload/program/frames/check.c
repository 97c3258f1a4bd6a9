// Follows a chain of Python frames, and asks the kernel before each load whether the memory can be read.
#include "preload/program/frames/check.h"

#include <string.h>

#include "preload/program/frames/chain.h"
#include "preload/program/frames/python.h"
#include "preload/program/unwind/memory.h"

enum {
  cframes_max = 10000,
  object_type = 8,
  type_name = 24,
  owners = 5,
  lines_max = 1 << 28,
  size_of_code = 16,
  state_bytes_max = 1024
};

// Pages that could be read. A question to the kernel for each word took 4 ms of an interpreter's start.
static uintptr_t readable_pages[64];

static bool is_readable(uintptr_t at) {
  const uintptr_t page = at >> 12;
  if (page == 0) return false;  // 0 is an empty place of the table
  uintptr_t* const known = &readable_pages[page % (sizeof readable_pages / sizeof *readable_pages)];
  if (__atomic_load_n(known, __ATOMIC_RELAXED) == page) return true;
  if (!memory_is_readable(at)) return false;
  __atomic_store_n(known, page, __ATOMIC_RELAXED);
  return true;
}

static bool read_word(uintptr_t at, uintptr_t* word) {
  if (at % 8 || at >> 47 || !is_readable(at)) return false;
  *word = python_word(at);
  return true;
}

static bool read_word_at(uintptr_t base, uint16_t offset, uintptr_t* word) {
  return base != 0 && read_word(base + offset, word);
}

static bool is_of_type(uintptr_t object, const char* name) {
  uintptr_t type, text;
  if (!read_word_at(object, object_type, &type) || !read_word_at(type, type_name, &text)) return false;
  const size_t bytes = strlen(name) + 1;
  if (!is_readable(text) || !is_readable(text + bytes)) return false;
  return memcmp((const void*)text, name, bytes) == 0;
}

static bool is_code(uintptr_t code) {
  uintptr_t type, function, file;
  return read_word_at(code, object_type, &type) && type == (uintptr_t)python_symbols.code_type &&
         read_word_at(code, python.function, &function) && is_of_type(function, "str") &&
         read_word_at(code, python.file, &file) && is_of_type(file, "str");
}

static bool is_in_code(uintptr_t frame, uintptr_t code) {
  uintptr_t instruction, size;
  if (!read_word_at(frame, python.instruction & ~7, &instruction)) return false;
  if (python_has_objects()) return true;
  instruction = python_instruction(frame);
  if (!read_word_at(code, size_of_code, &size)) return false;
  const uintptr_t begin = code + python.code_bytes - 2;  // before the first instruction
  return instruction - begin < 2 + (size & (lines_max - 1)) * 2;
}

static const char* check_frame(uintptr_t frame) {
  uintptr_t code, word;
  if (python_has_objects() && !is_of_type(frame, "frame")) return "a frame is no frame object";
  if (python.owner &&
      (!read_word_at(frame, python.owner & ~7, &word) || *(const uint8_t*)(frame + python.owner) >= owners))
    return "a frame has no owner";
  if (python_is_shim(frame)) return NULL;
  if (!read_word_at(frame, python.code, &code) || !is_code(code & ~python.code_tag)) return "a frame has no code";
  return is_in_code(frame, code & ~python.code_tag) ? NULL : "a frame is outside of its code";
}

// Whether a frame object is at the line that the interpreter says.
static bool is_at_line(uintptr_t frame) {
  const uintptr_t code = python_code(frame);
  return python_symbols.frame_line((void*)frame) ==
         python_symbols.line((void*)code, python_offset(code, python_instruction(frame)));
}

// Follows the CFrames. The outermost is in the state; 3.10 leaves its `previous` as malloc has it. In 3.11 each other
// one has the frames up to the innermost of the next one, and the last of these begins the run.
static const char* check_cframes(uintptr_t state, uintptr_t frame) {
  static const char fault[] = "a C frame is broken";
  uintptr_t cframe, caller, word;
  if (!read_word_at(state, python.thread_cframe, &cframe)) return fault;
  for (int count = 0; count < cframes_max; count++) {
    if (cframe - state < state_bytes_max) return NULL;
    if (!read_word_at(cframe, python.cframe_previous, &cframe)) return fault;
    if (python.layout != python_entries) continue;
    if (!read_word_at(cframe, python.cframe_frame, &caller)) return fault;  // 0: no frame is outside of it
    bool begins_run = false;
    for (; frame != caller; frame = python_word(frame + python.previous)) {
      if (!frame || !read_word_at(frame, python.is_entry & ~7, &word)) return fault;
      if (*(const uint8_t*)(frame + python.is_entry) > 1) return fault;
      begins_run = python_begins_run(frame);
    }
    if (!begins_run) return fault;
  }
  return fault;
}

const char* check_state(uintptr_t* state) {
  uintptr_t word;
  const uintptr_t current = python_symbols.current_state();
  if (current && !read_word_at(current, python.thread_id, &word)) return "there is no state of a thread";
  if (!read_word_at((uintptr_t)python_symbols.runtime, python.finalizing, &word) ||
      (word && !python_symbols.is_finalizing()))
    return "the mark of an interpreter's end is elsewhere";
  *state = python_own_state((uintptr_t)__builtin_thread_pointer());
  return NULL;
}

// Whether the state is the calling thread's. In 3.12 a thread may have the state of a sub-interpreter that another
// thread has made. The state has the id of that one: its header, which begins with its own address.
static bool is_of_thread(uintptr_t state, uintptr_t thread) {
  uintptr_t id, word;
  if (!read_word_at(state, python.thread_id, &id)) return false;
  if (id == thread) return true;
  return python.layout == python_shims && state == python_symbols.current_state() && read_word(id, &word) && word == id;
}

const char* check_chain(uintptr_t state, uintptr_t thread) {
  uintptr_t innermost, frame;
  if (!is_of_thread(state, thread)) return "a thread has another's state";
  if (!read_word_at(state, python.thread_frame, &innermost)) return "a thread has no frames";
  if (python.layout == python_entries || python.layout == python_shims) {
    if (innermost && !read_word_at(innermost, python.cframe_frame, &innermost)) return "a thread has no frames";
  }
  int on_other_lines = 0, count = 0;
  uintptr_t passed = 0;  // a frame of a chain that does not end comes again
  for (frame = innermost; frame != 0; count++) {
    const char* const fault = frame != passed ? check_frame(frame) : "a chain of frames does not end";
    if (fault) return fault;
    if ((count & (count - 1)) == 0) passed = frame;
    if (count == chain_frames_max) return NULL;                                 // a recursion, whose stacks are native
    if (python.layout == python_cframes) on_other_lines += !is_at_line(frame);  // up to 3.9 the type has the place
    if (!read_word_at(frame, python.previous, &frame)) return "a chain of frames is broken";
  }
  // A function of sys.settrace() may keep a frame at another line.
  if (on_other_lines * 2 > count) return "frames are at other lines";
  return python.thread_cframe ? check_cframes(state, innermost) : NULL;
}
