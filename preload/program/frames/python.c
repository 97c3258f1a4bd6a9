// Finds an interpreter in a module, and the offsets of its structures (python.h).
#include "preload/program/frames/python.h"

#include <stddef.h>
#include <string.h>

#include "preload/program/kernel.h"
#include "preload/program/unwind/modules.h"

struct PythonOffsets python;
struct PythonSymbols python_symbols;

static const struct PythonOffsets table[] = {
    {.version = 0x308, .layout = python_counted, .thread_id = 176, .thread_frame = 24, .unit = 1, .finalizing = 16},
    {.version = 0x309, .layout = python_counted, .thread_id = 176, .thread_frame = 24, .unit = 1, .finalizing = 16},
    {.version = 0x30a,
     .layout = python_cframes,
     .thread_id = 176,
     .thread_frame = 24,
     .thread_cframe = 48,
     .cframe_previous = 8,
     .instruction = 96,
     .unit = 2,
     .finalizing = 16},
    {.version = 0x30b,
     .layout = python_entries,
     .thread_id = 152,
     .thread_frame = 56,
     .thread_cframe = 56,
     .cframe_frame = 8,
     .cframe_previous = 16,
     .previous = 48,
     .code = 32,
     .instruction = 56,
     .owner = 69,
     .is_entry = 68,
     .finalizing = 24},
    {.version = 0x30c,
     .layout = python_shims,
     .thread_id = 136,
     .thread_frame = 56,
     .previous = 8,
     .code = 0,
     .instruction = 56,
     .owner = 70,
     .finalizing = 24},
};

// Words of _Py_DebugOffsets, of which each minor version has its own layout (Include/internal/pycore_runtime.h and
// pycore_debug_offsets.h). Other versions than these are not known.
struct DebugWords {
  uint8_t thread, frame_index, thread_id_index, frame;
};
static const struct DebugWords words_of_minor[] = {
    [13] = {19, 4, 5, 28},
    [14] = {22, 4, 5, 31},
    [15] = {22, 4, 8, 39},
};
enum { minor_first = 13, minor_last = 15, final_release = 0xf0 };

static const char unknown_version[] = "this version of Python is not known";

static const char* read_debug_offsets(uint32_t version) {
  const uint64_t* const words = (const uint64_t*)(const void*)python_symbols.runtime;
  const uint32_t minor = version >> 16 & 255;
  if (minor < minor_first || minor > minor_last || (version & 0xf0) != final_release || words[1] != version)
    return unknown_version;
  if (words[2]) return "this Python has no global interpreter lock";
  const struct DebugWords at = words_of_minor[minor];
  const uint64_t *const thread = words + at.thread, *const frame = words + at.frame;
  python = (struct PythonOffsets){
      .version = (uint16_t)(version >> 16),
      .layout = python_shims_alone,
      .thread_id = (uint16_t)thread[at.thread_id_index],
      .thread_frame = (uint16_t)thread[at.frame_index],
      .previous = (uint16_t)frame[1],
      .code = (uint16_t)frame[2],
      .instruction = (uint16_t)frame[3],
      .owner = (uint16_t)frame[5],
      .finalizing = (uint16_t)words[4],
      .code_tag = minor >= 14 ? 7 : 0,
      .base_frames = minor >= 15,
  };
  return NULL;
}

static const char* read_table(uint32_t version) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (table[i].version != version >> 16) continue;
    python = table[i];
    return NULL;
  }
  return unknown_version;
}

// A field of objects, as their type lists it.
static void read_member(const char* type, const char* wanted, uint16_t* offset) {
  enum { type_members = 240 };
  struct Member {  // PyMemberDef
    const char* name;
    int type;
    long offset;
    int flags;
    const char* doc;
  };
  const struct Member* member = *(const struct Member* const*)(const void*)(type + type_members);
  for (; member && member->name; member++)
    if (strcmp(member->name, wanted) == 0) *offset = (uint16_t)member->offset;
}

static bool read_types(void) {
  enum { type_basic_size = 32 };
  const char *const code_type = python_symbols.code_type, *const frame_type = python_symbols.frame_type;
  read_member(code_type, "co_filename", &python.file);
  read_member(code_type, "co_name", &python.function);
  read_member(code_type, "co_qualname", &python.function);
  if (python_has_objects()) {
    read_member(frame_type, "f_back", &python.previous);
    read_member(frame_type, "f_code", &python.code);
    read_member(frame_type, "f_lasti", &python.instruction);  // not in 3.10
  } else {
    python.code_bytes = (uint16_t) * (const long*)(const void*)(code_type + type_basic_size);
  }
  return python.file && python.function && python.previous && python.instruction;
}

// The version as PY_VERSION_HEX has it; up to 3.10 from its text: "3.9.18 (main, …".
static uint32_t version_of(const uint32_t* version, const char* (*text)(void)) {
  if (version) return *version;
  const char* at = text ? text() : NULL;
  if (!at || at[0] != '3' || at[1] != '.') return 0;
  uint32_t minor = 0;
  for (at += 2; *at >= '0' && *at <= '9'; at++) minor = minor * 10 + (uint32_t)(*at - '0');
  return 3u << 24 | minor << 16 | final_release;
}

// Up to 3.6 there is no _PyRuntime.
static const char* is_older(uintptr_t address, bool* is_python) {
  void *loop = NULL, *version = NULL;
  module_symbol(address, &(struct WantedSymbol){"PyEval_EvalFrameEx", &loop, NULL});
  if (loop) module_symbol(address, &(struct WantedSymbol){"Py_GetVersion", &version, NULL});
  *is_python = version != NULL;
  return version ? unknown_version : NULL;
}

const char* python_find(uintptr_t address, bool* is_python) {
  struct PythonSymbols* const found = &python_symbols;
  const uint32_t* version = NULL;
  const char* (*version_text)(void) = NULL;
  const struct WantedSymbol wanted[] = {
      {"_PyRuntime", (void**)&found->runtime, NULL},
      {"PyCode_Type", (void**)&found->code_type, NULL},
      {"PyFrame_Type", (void**)&found->frame_type, NULL},
      {"Py_Version", (void**)&version, NULL},
      {"Py_GetVersion", (void**)&version_text, NULL},
      {"_PyThreadState_UncheckedGet", (void**)&found->current_state, NULL},
      {"PyThreadState_GetUnchecked", (void**)&found->current_state, NULL},
      {"_Py_IsFinalizing", (void**)&found->is_finalizing, NULL},
      {"Py_IsFinalizing", (void**)&found->is_finalizing, NULL},
      {"PyGILState_GetThisThreadState", (void**)&found->state_of_thread, NULL},
      {"PyUnicode_GetLength", (void**)&found->text_length, NULL},
      {"PyUnicode_ReadChar", (void**)&found->text_character, NULL},
      {"PyCode_Addr2Line", (void**)&found->line, NULL},
      {"PyFrame_GetLineNumber", (void**)&found->frame_line, NULL},
      {"_PyEval_EvalFrameDefault", (void**)&found->loop_begin, &found->loop_bytes},
  };
  *found = (struct PythonSymbols){0};
  *is_python = false;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    module_symbol(address, &wanted[i]);
    if (!found->runtime) return is_older(address, is_python);
  }
  *is_python = true;
  static const char lacks[] = "this Python does not export what is needed";
  if (!found->code_type || !found->frame_type || !found->current_state || !found->state_of_thread ||
      !found->is_finalizing || !found->text_length || !found->text_character || !found->line || !found->frame_line)
    return lacks;
  const uint32_t number = version_of(version, version_text);
  const char* const fault =
      memcmp(found->runtime, "xdebugpy", 8) == 0 ? read_debug_offsets(number) : read_table(number);
  if (fault) return fault;
  return read_types() ? NULL : lacks;
}

bool python_is_in(uintptr_t address) {
  void* loop = NULL;
  module_symbol(address, &(struct WantedSymbol){"_PyEval_EvalFrameDefault", &loop, NULL});
  return loop != NULL;
}
