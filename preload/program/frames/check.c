// Follows a chain of Python frames, and asks the kernel before each load whether the memory can be read.
#include "preload/program/frames/check.h"

#include <string.h>

#include "preload/program/frames/python.h"
#include "preload/program/unwind/memory.h"

enum { frames_max = 10000, object_type = 8, type_name = 24, owners = 5, lines_max = 1 << 28, size_of_code = 16 };

// Pages that could be read. A question to the kernel for each word took 4 ms of an interpreter's start.
static uintptr_t readable_pages[64];

static bool is_readable(uintptr_t at) {
  const uintptr_t page = at >> 12;
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
  instruction = python_instruction(frame);
  if (python_has_objects()) return (int32_t)instruction >= -1 && (int32_t)instruction < lines_max;
  if (!read_word_at(code, size_of_code, &size)) return false;
  const uintptr_t begin = code + python.code_bytes - 2;  // before the first instruction
  return instruction - begin < 2 + (size & (lines_max - 1)) * 2;
}

static const char* check_frame(uintptr_t frame) {
  uintptr_t code, word;
  if (python.owner &&
      (!read_word_at(frame, python.owner & ~7, &word) || *(const uint8_t*)(frame + python.owner) >= owners))
    return "a frame has no owner";
  if (python_is_shim(frame)) return NULL;
  if (!read_word_at(frame, python.code, &code) || !is_code(code & ~python.code_tag)) return "a frame has no code";
  return is_in_code(frame, code & ~python.code_tag) ? NULL : "a frame is outside of its code";
}

const char* check_state(uintptr_t* state) {
  uintptr_t current = 0, word;
  if (python.current) {
    const uintptr_t at = (uintptr_t)python_symbols.runtime + python.current;
    if (!read_word(at, &current)) return "there is no state of a thread";
    if (current && !read_word_at(current, python.thread_id, &word)) return "there is no state of a thread";
  }
  if (!read_word((uintptr_t)python_symbols.runtime + python.finalizing, &word)) return "there is no interpreter's end";
  *state = python_own_state((uintptr_t)__builtin_thread_pointer());
  return NULL;
}

const char* check_chain(uintptr_t state, uintptr_t thread) {
  uintptr_t word, frame;
  if (!read_word_at(state, python.thread_id, &word) || word != thread) return "a thread has another's state";
  if (!read_word_at(state, python.thread_frame, &frame)) return "a thread has no frames";
  if (python.layout == python_entries || python.layout == python_shims) {
    if (frame && !read_word_at(frame, python.cframe_frame, &frame)) return "a thread has no frames";
  }
  for (int count = 0; frame != 0; count++) {
    const char* const fault = count < frames_max ? check_frame(frame) : "a chain of frames does not end";
    if (fault) return fault;
    if (!read_word_at(frame, python.previous, &frame)) return "a chain of frames is broken";
  }
  if (!python.thread_cframe) return NULL;
  uintptr_t cframe;
  if (!read_word_at(state, python.thread_cframe, &cframe)) return "a thread has no C frames";
  for (int count = 0; cframe != 0; count++)
    if (count == frames_max || !read_word_at(cframe, python.cframe_previous, &cframe)) return "a C frame is broken";
  return NULL;
}
