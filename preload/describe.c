#include "preload/describe.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "preload/name.h"
#include "preload/sys.h"

// A header is UTF-8; a command line may be anything.
static void make_utf8(char* text, size_t length) {
  for (size_t i = 0; i < length;) {
    unsigned char c = (unsigned char)text[i];
    size_t more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 9;
    bool whole = more < 9 && i + more < length;
    for (size_t k = 1; whole && k <= more; k++) whole = ((unsigned char)text[i + k] & 0xc0) == 0x80;
    if (!whole) text[i] = '?';
    i += whole ? more + 1 : 1;
  }
}

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
