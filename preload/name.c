#include "preload/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preload/line.h"
#include "preload/sys.h"

static char template[path_bytes_max];
static char folder[path_bytes_max];
static char program[256] = "program";

static void copy(char* out, size_t room, const char* text) {
  size_t length = strnlen(text, room - 1);
  memcpy(out, text, length);
  out[length] = 0;
}

void name_configure(void) {
  const char* wanted = getenv("CMTTRACE_OUT");
  copy(template, sizeof template, wanted && *wanted ? wanted : "%n.%p.trace");
  // A child that changes its folder still writes where its parent began.
  if (sys(SYS_getcwd, folder, sizeof folder - 1) <= 0 || folder[0] != '/') folder[0] = 0;
  const char* own = program_invocation_short_name;
  if (own && *own) copy(program, sizeof program, own);
}

const char* name_of_program(void) { return program; }

static char* fill(char* out, const char* end, int process) {
  for (const char* t = template; *t; t++) {
    if (end - out < (long)sizeof program) return NULL;
    if (t[0] == '%' && t[1] == 'p')
      out = line_decimal(out, (uint64_t)process), t++;
    else if (t[0] == '%' && t[1] == 'n')
      out = line_text(out, program), t++;
    else if (t[0] == '%' && t[1] == '%')
      *out++ = *t++;
    else
      *out++ = *t;
  }
  *out = 0;
  return out;
}

static void insert_number(char* name, char* end, int n) {
  char* dot = strrchr(name, '.');
  if (!dot || dot == name || strchr(dot, '/')) dot = end;
  char number[24] = ".";
  size_t length = (size_t)(line_decimal(number + 1, (uint64_t)n) - number);
  memmove(dot + length, dot, (size_t)(end - dot) + 1);
  memcpy(dot, number, length);
}

bool name_expand(char out[path_bytes_max], int process, int n) {
  if (!template[0]) name_configure();
  char* begin = out;
  if (template[0] != '/' && folder[0]) {
    if (strlen(folder) > path_bytes_max / 2) return false;
    begin = line_text(line_text(out, folder), folder[1] ? "/" : "");
  }
  char* end = fill(begin, out + path_bytes_max - 32, process);
  if (!end) return false;
  if (n > 1) insert_number(begin, end, n);
  return true;
}

bool name_is_compact(const char* path) {
  size_t length = strlen(path);
  return length >= 4 && strcmp(path + length - 4, ".cmt") == 0;
}
