// Replaces preload/program/frames/python.c in a copy of the recorder: PYTHON_SHIFT=FIELD:BYTES makes one offset wrong.
#define python_find python_find_rightly
#include "preload/program/frames/python.c"
#undef python_find

#include <stdlib.h>

#define FIELD(name) \
  { #name, offsetof(struct PythonOffsets, name) }
static const struct {
  const char* name;
  size_t at;
} fields[] = {FIELD(thread_id),       FIELD(thread_frame), FIELD(thread_cframe), FIELD(cframe_frame),
              FIELD(cframe_previous), FIELD(previous),     FIELD(code),          FIELD(instruction),
              FIELD(owner),           FIELD(is_entry),     FIELD(finalizing)};

const char* python_find(uintptr_t address, bool* is_python) {
  const char* const fault = python_find_rightly(address, is_python);
  const char* const wanted = getenv("PYTHON_SHIFT");
  for (size_t i = 0; wanted && i < sizeof fields / sizeof *fields; i++) {
    const size_t length = strlen(fields[i].name);
    if (strncmp(wanted, fields[i].name, length) != 0 || wanted[length] != ':') continue;
    uint16_t* const field = (uint16_t*)(void*)((char*)&python + fields[i].at);
    *field = (uint16_t)(*field + atoi(wanted + length + 1));
  }
  return fault;
}
