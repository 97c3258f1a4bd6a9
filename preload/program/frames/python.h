/// How CPython 3.8 to 3.15 keeps a thread's Python frames in memory, and where. One binary serves all versions: 3.13
/// and later state the offsets themselves (`_Py_DebugOffsets`), and for the others they are in a table. Fields of
/// objects are those that the types `code` and, up to 3.10, `frame` list in their tp_members.
///
/// The *chain* of a thread leads from its innermost Python frame outwards. A *run* is the part of it that one
/// activation of the interpreter's evaluation loop executes. Since 3.11 an activation begins a run for each call from C
/// only, and has an object on the C stack that the chain leads to: the *anchor*. So the native frame that executes a
/// run is the one whose part of the C stack has the anchor.
///
/// | version     | begins a run                  | its anchor                                  |
/// |-------------|-------------------------------|---------------------------------------------|
/// | 3.8, 3.9    | each frame                    | none: loops and frames are counted          |
/// | 3.10        | each frame                    | the CFrame, by the thread state's `cframe`  |
/// | 3.11        | a frame with `is_entry`       | the same                                    |
/// | 3.12 and on | a frame that the C stack owns | that frame itself, which has no code        |
///
/// A thread reads only its own chain, which no other thread changes, so it needs neither a lock nor the GIL.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum PythonLayout {
  python_counted,      ///< 3.8, 3.9: frames are objects
  python_cframes,      ///< 3.10: frames are objects, each with a CFrame
  python_entries,      ///< 3.11
  python_shims,        ///< 3.12: by way of the CFrame
  python_shims_alone,  ///< 3.13 and later
};

/// Offsets in bytes.
struct PythonOffsets {
  uint16_t version;  ///< 0x30b: 3.11
  enum PythonLayout layout;
  uint16_t thread_id, thread_frame, thread_cframe;        ///< of the thread state; thread_frame: the innermost frame
  uint16_t cframe_frame, cframe_previous;                 ///< of a CFrame
  uint16_t previous, code, instruction, owner, is_entry;  ///< of a frame
  uint16_t code_bytes;      ///< of a code object, by its type: where its instructions begin
  uint16_t function, file;  ///< of a code object, by its type: the strings
  uint16_t finalizing;      ///< of _PyRuntime: the state of the thread that ends the interpreter
  uint64_t code_tag;        ///< bits of a frame's `code` that are no part of the address
  uint8_t unit;             ///< bytes of one step of `instruction`, where that is a number
  uint8_t base_frames;      ///< 1 since 3.15: the outermost frame is in the thread state, and begins no run
};

/// The interpreter's functions and variables.
struct PythonSymbols {
  const char* runtime;
  char* code_type;
  const char* frame_type;
  uintptr_t (*current_state)(void);    ///< up to 3.11 that of the thread that has the GIL, else of the calling one
  uintptr_t (*state_of_thread)(void);  ///< also of a thread without the GIL
  int (*is_finalizing)(void);
  long (*text_length)(void* text);
  uint32_t (*text_character)(void* text, long at);
  int (*line)(void* code, int at);
  int (*frame_line)(void* frame);    ///< up to 3.10
  uintptr_t loop_begin, loop_bytes;  ///< _PyEval_EvalFrameDefault, or the part of it that has the name
};

extern struct PythonOffsets python __attribute__((visibility("hidden")));
extern struct PythonSymbols python_symbols __attribute__((visibility("hidden")));

/// Finds the interpreter in the module that has an address. Returns NULL if its frames can be read, else why not;
/// `*is_python`: whether the module is an interpreter at all.
const char* python_find(uintptr_t address, bool* is_python);
/// Whether the module that has an address is an interpreter.
bool python_is_in(uintptr_t address);

static inline uintptr_t python_word(uintptr_t at) { return *(const volatile uintptr_t*)at; }
static inline bool python_has_objects(void) { return python.layout <= python_cframes; }

/// The state of the calling thread, or 0.
static inline uintptr_t python_own_state(uintptr_t thread) {
  const uintptr_t current = python_symbols.current_state();
  if (current && (python.layout > python_entries || python_word(current + python.thread_id) == thread)) return current;
  // The thread does not have the GIL. An interpreter that ends frees the states of such threads. The ending thread
  // keeps its own until state_of_thread() returns NULL.
  const bool is_ending = python_symbols.is_finalizing() != 0;
  const uintptr_t state = python_symbols.state_of_thread();
  return is_ending && python_word((uintptr_t)python_symbols.runtime + python.finalizing) != state ? 0 : state;
}

/// Whether the thread with the state holds the lock.
static inline bool python_is_locked(uintptr_t state) { return python_symbols.current_state() == state; }

/// The innermost frame of a state, or 0.
static inline uintptr_t python_innermost(uintptr_t state) {
  const uintptr_t frame = python_word(state + python.thread_frame);
  if (python.layout != python_entries && python.layout != python_shims) return frame;
  return frame ? python_word(frame + python.cframe_frame) : 0;
}

/// The innermost CFrame of a state.
static inline uintptr_t python_cframe(uintptr_t state) { return python_word(state + python.thread_cframe); }

/// Whether a thread with this innermost frame executes no Python.
static inline bool python_is_idle(uintptr_t innermost) {
  return innermost == 0 || (python.base_frames != 0 && python_word(innermost + python.previous) == 0);
}

/// Changes when the frame goes on to another line.
static inline uintptr_t python_instruction(uintptr_t frame) {
  const uintptr_t at = frame + python.instruction;
  return python_has_objects() ? *(const volatile uint32_t*)at : python_word(at);
}
static inline uintptr_t python_code(uintptr_t frame) { return python_word(frame + python.code) & ~python.code_tag; }

/// Names an instruction of a code object. Objects are aligned to 16 bytes.
static inline uint64_t python_line_key(uintptr_t code, uintptr_t instruction) {
  return python_has_objects() ? (uint64_t)code << 16 ^ (uint32_t)instruction : instruction;
}

/// Whether the frame only marks the begin of a run: it has no code.
static inline bool python_is_shim(uintptr_t frame) {
  enum { owned_by_interpreter = 3 };
  return python.layout >= python_shims && *(const volatile uint8_t*)(frame + python.owner) >= owned_by_interpreter;
}
static inline bool python_begins_run(uintptr_t frame) {
  if (python.layout == python_entries) return *(const volatile char*)(frame + python.is_entry) != 0;
  return python_has_objects() || python_is_shim(frame);
}

/// Where in the code object's instructions the frame is, as PyCode_Addr2Line takes it.
static inline int python_offset(uintptr_t code, uintptr_t instruction) {
  if (python_has_objects()) return (int)(uint32_t)instruction * python.unit;
  const long offset = (long)instruction - (long)(code + python.code_bytes);
  return offset < 0 ? -1 : (int)offset;
}
