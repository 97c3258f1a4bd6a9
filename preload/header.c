#include "preload/header.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "preload/line.h"
#include "preload/name.h"
#include "preload/sys.h"

enum { command_bytes_max = 16000 };  // escaped, and with the rest, below header_bytes_max

static bool is_bare(const char* text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '#') return false;
  }
  return length > 0;
}

static char* entry(char* out, const char* key, const char* text, size_t length) {
  out = line_text(line_text(line_text(out, "#cmt "), key), "=");
  if (is_bare(text, length)) {
    memcpy(out, text, length);
    out += length;
  } else {
    out = line_quoted(out, text, length);
  }
  *out++ = '\n';
  return out;
}

static char* decimal_entry(char* out, const char* key, uint64_t value) {
  char digits[24];
  return entry(out, key, digits, (size_t)(line_decimal(digits, value) - digits));
}

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

// /proc has it as it is now; argv would have to be found first, and programs write over it.
static size_t read_command(char* out) {
  long file = sys(SYS_open, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  size_t length = 0;
  for (long got = 1; got > 0 && length<command_bytes_max; length += got> 0 ? (size_t)got : 0) {
    got = sys(SYS_read, file, out + length, command_bytes_max - length);
  }
  sys(SYS_close, file);
  while (length && out[length - 1] == 0) length--;
  for (size_t i = 0; i < length; i++) {
    if (out[i] == 0) out[i] = ' ';
  }
  make_utf8(out, length);
  return length;
}

static char* padded(char* out, int64_t value, int width, char after) {
  for (int64_t unit = width == 4 ? 1000 : 10; unit; unit /= 10) *out++ = (char)('0' + value / unit % 10);
  *out++ = after;
  return out;
}

// ISO 8601 in UTC, without gmtime and its locks. The date from days since 1970 as in Howard Hinnant's
// "chrono-compatible low-level date algorithms": years that begin in March, in eras of 400.
static char* wall_clock(char* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t days = now.tv_sec / 86400 + 719468, second = now.tv_sec % 86400;
  int64_t era = days / 146097, of_era = days % 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
  month = month < 10 ? month + 3 : month - 9;
  out = padded(out, year + era * 400 + (month <= 2), 4, '-');
  out = padded(padded(out, month, 2, '-'), day, 2, 'T');
  return padded(padded(padded(out, second / 3600, 2, ':'), second / 60 % 60, 2, ':'), second % 60, 2, 'Z');
}

char* header_write(char* room, int process) {
  // The command is read into the upper end of the room, and is gone when the room below it fills up.
  char* command = room + header_bytes_max - command_bytes_max;
  size_t length = read_command(command);
  char start[32];
  char* out = line_text(room, "#cmt text=1\n");
  out = entry(out, "program", name_of_program(), strlen(name_of_program()));
  out = entry(out, "command", command, length);
  out = decimal_entry(out, "pid", (uint64_t)process);
  out = entry(out, "start", start, (size_t)(wall_clock(start) - start));
  out = entry(out, "recorder", "libcmttrace " CMT_VERSION, strlen("libcmttrace " CMT_VERSION));
  return decimal_entry(out, "page_size", 4096);
}
