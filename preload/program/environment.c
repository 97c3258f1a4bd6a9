#include "preload/program/environment.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "preload/program/name.h"
#include "preload/protocol.h"
#include "preload/quantity.h"
#include "preload/words.h"

static const char prefix[] = "CMTTRACE_";

/// A variable has units, or words to choose from, or is a path, or several with commas between them.
static const struct Variable {
  const char* name;
  const struct Unit* units;
  const char* words[3];
  uint32_t paths_max;
} variables[] = {
    {.name = "CMTTRACE_OUT", .paths_max = outputs_max},
    {.name = "CMTTRACE_RINGS", .paths_max = 1},
    {.name = "CMTTRACE_CONTROL", .paths_max = 1},
    {.name = "CMTTRACE_STATUS", .paths_max = 1},
    {.name = "CMTTRACE_COLLECTOR", .paths_max = 1},
    {.name = "CMTTRACE_TIME", .words = {"0", "1"}},
    {.name = "CMTTRACE_USABLE", .words = {"0", "1"}},
    {.name = "CMTTRACE_WAIT", .words = {"0", "1"}},
    {.name = "CMTTRACE_START", .words = {"paused"}},
    {.name = "CMTTRACE_ON_FULL", .words = {"wait", "drop"}},
    {.name = "CMTTRACE_SAMPLE", .units = units_of_time},
    {.name = "CMTTRACE_MAX_TIME", .units = units_of_time},
    {.name = "CMTTRACE_MAX_BYTES", .units = units_of_size},
    {.name = "CMTTRACE_SPILL", .units = units_of_size},
    {.name = "CMTTRACE_MAX_EVENTS", .units = units_of_count},
    {.name = "CMTTRACE_CHILD_OF", .units = units_of_count},
};

bool environment_says(const char* name, const char* value) {
  const char* found = getenv(name);
  return found && strcmp(found, value) == 0;
}

static bool is_one_of(const char* value, const char* const* words) {
  while (*words && strcmp(*words, value) != 0) words++;
  return *words != NULL;
}

static bool are_paths(const char* value, uint32_t paths_max) {
  uint32_t paths = 0;
  while (*value) {
    size_t length = paths_max == 1 ? strlen(value) : strcspn(value, ",");
    if (length >= path_bytes_max / 2 || (length && ++paths > paths_max)) return false;
    value += length;
    value += *value == ',';
  }
  return true;
}

static bool is_understood(const struct Variable* variable, const char* value) {
  uint64_t unused;
  if (*value == 0) return true;  // as if it were not there
  if (variable->units) return quantity_read(value, variable->units, &unused);
  if (variable->paths_max) return are_paths(value, variable->paths_max);
  return is_one_of(value, variable->words);
}

static const char* line_about(const char* name, size_t length, const char* value) {
  static char line[256];
  memcpy(line, name, length);
  char* end = put_text(line + length, " cannot be '");
  size_t shown = strnlen(value, 64);
  memcpy(end, value, shown);
  put_text(end + shown, shown == 64 ? "...'" : "'")[0] = 0;
  return line;
}

static const char* fault_of(const char* entry) {
  size_t length = strcspn(entry, "=");
  const char* value = entry + length + (entry[length] == '=');
  if (length > 64) length = 64;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const struct Variable* variable = &variables[i];
    if (strlen(variable->name) != length || memcmp(variable->name, entry, length) != 0) continue;
    return is_understood(variable, value) ? NULL : line_about(entry, length, value);
  }
  static char line[128];
  memcpy(line, entry, length);
  put_text(line + length, " is not a variable that the tracer knows")[0] = 0;
  return line;
}

extern char** environ;

const char* environment_fault(void) {
  const char* fault = NULL;
  for (char** entry = environ; entry && *entry && !fault; entry++) {
    if (strncmp(*entry, prefix, sizeof prefix - 1) == 0) fault = fault_of(*entry);
  }
  return fault;
}
