#include "preload/program/name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/program/sys.h"
#include "preload/protocol.h"
#include "preload/words.h"

_Static_assert((int)name_rings == outputs_max, "behind the trace's files");

enum { parts_max = 100000 };

static char templates[names_max][path_bytes_max];
static uint32_t count;
static char folder[path_bytes_max];
static char program[256] = "program";
static bool only_if_there;

static void copy(char* out, size_t room, const char* text, size_t length) {
  if (length >= room) length = room - 1;
  memcpy(out, text, length);
  out[length] = 0;
}

static void copy_list(const char* wanted) {
  for (count = 0; count < outputs_max && *wanted;) {
    size_t length = strcspn(wanted, ",");
    if (length) copy(templates[count++], path_bytes_max, wanted, length);
    wanted += length;
    wanted += *wanted == ',';
  }
}

static void copy_variable(uint32_t which, const char* name) {
  const char* value = getenv(name);
  if (value) copy(templates[which], path_bytes_max, value, strlen(value));
}

void name_configure(void) {
  const char* wanted = getenv("CMTTRACE_OUT");
  copy_list(wanted ? wanted : "");
  if (!count) copy_list("%n.%p.trace");
  copy_variable(name_rings, "CMTTRACE_RINGS");
  copy_variable(name_control, "CMTTRACE_CONTROL");
  copy_variable(name_status, "CMTTRACE_STATUS");
  only_if_there = templates[name_status][0] == '-';
  if (only_if_there) memmove(templates[name_status], templates[name_status] + 1, path_bytes_max - 1);
  // A child that changes its folder still writes where its parent began.
  if (sys(SYS_getcwd, folder, sizeof folder - 1) <= 0 || folder[0] != '/') folder[0] = 0;
  const char* own = program_invocation_short_name;
  if (own && *own) copy(program, sizeof program, own, strlen(own));
}

const char* name_of_program(void) { return program; }

uint32_t name_count(void) {
  if (!count) name_configure();
  return count;
}

static char* fill(char* out, const char* end, const char* template, int process) {
  for (const char* t = template; *t; t++) {
    if (end - out < (long)sizeof program) return NULL;
    if (t[0] == '%' && t[1] == 'p')
      out = put_decimal(out, (uint64_t)process), t++;
    else if (t[0] == '%' && t[1] == 'n')
      out = put_text(out, program), t++;
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
  size_t length = (size_t)(put_decimal(number + 1, (uint64_t)n) - number);
  memmove(dot + length, dot, (size_t)(end - dot) + 1);
  memcpy(dot, number, length);
}

static bool expand(char* out, const char* template, int process, int n) {
  char* begin = out;
  if (template[0] != '/' && folder[0]) {
    if (strlen(folder) > path_bytes_max / 2) return false;
    begin = put_text(put_text(out, folder), folder[1] ? "/" : "");
  }
  char* end = fill(begin, out + path_bytes_max - 32, template, process);
  if (!end) return false;
  if (n > 1) insert_number(begin, end, n);
  return true;
}

bool name_is_given(uint32_t which) {
  if (!count) name_configure();
  return templates[which][0] != 0;
}

bool name_only_if_there(void) { return only_if_there; }

bool name_expand(char out[path_bytes_max], uint32_t which, int process, int n) {
  out[0] = 0;
  return name_is_given(which) && expand(out, templates[which], process, n);
}

static long why_taken(const char* path) {
  struct stat status;
  if (sys(SYS_stat, path, &status) != 0 || S_ISREG(status.st_mode)) return 0;
  return S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST;
}

long name_create(char out[path_bytes_max], uint32_t which, int process, uint32_t mode) {
  long fd = -EEXIST;
  for (int n = 1; fd == -EEXIST && n <= parts_max; n++) {
    if (!name_expand(out, which, process, n)) return -ENAMETOOLONG;
    fd = sys(SYS_open, out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd == -EEXIST && why_taken(out)) return why_taken(out);
  }
  return fd;
}
