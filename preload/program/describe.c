#include "preload/program/describe.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "preload/program/name.h"
#include "preload/program/sys.h"
#include "preload/words.h"

// /proc has it as it is now; argv would have to be found first, and programs write over it. After an exec the collector
// would read another one.
static void read_command(char out[command_bytes_max]) {
  long file = sys(SYS_open, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  size_t length = 0;
  for (long got = 1; got > 0 && length < command_bytes_max - 1;) {
    got = sys(SYS_read, file, out + length, command_bytes_max - 1 - length);
    if (got > 0) length += (size_t)got;
  }
  sys(SYS_close, file);
  while (length && out[length - 1] == 0) length--;
  for (size_t i = 0; i < length; i++) {
    if (out[i] == 0) out[i] = ' ';
  }
  make_utf8(out, length);
  out[length] = 0;
}

void describe(struct Control* control) {
  size_t length = strnlen(name_of_program(), sizeof control->program - 1);
  memcpy(control->program, name_of_program(), length);
  make_utf8(control->program, length);
  read_command(control->command);
}
