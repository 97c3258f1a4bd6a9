// Rebuilds what the kernel was given for this program: file, words and environment. Then it calls execve.
#include "preload/program/launch/restart.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "preload/program/kernel.h"

void __asan_init(void) __attribute__((weak));
void __hwasan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));
void __msan_init(void) __attribute__((weak));

// A sanitizer has a dl_iterate_phdr of its own, which cannot be called at its start: so the loader is asked, by weak
// symbols.
bool has_sanitizer(void) { return __asan_init || __hwasan_init || __tsan_init || __msan_init; }

extern ElfW(Dyn) _DYNAMIC[] HIDDEN;
// The loader's. musl's has no such variables, and no sanitizers.
extern struct r_debug _r_debug __attribute__((weak));
extern void* __libc_stack_end __attribute__((weak));

enum { words_bytes_max = 8 << 20, scripts_max = 8 };

static const char preload[] = "LD_PRELOAD=", status[] = "CMTTRACE_STATUS=", own_settings[] = "CMTTRACE_",
                  own_file[] = "/proc/self/exe", descriptors[] = "/dev/fd/";

// The statement keeps the compiler from replacing a loop by a call of strlen or memcpy.
#define LOOP __asm__ volatile("")

static size_t length_of(const char* text) {
  size_t length = 0;
  for (; text[length]; length++) LOOP;
  return length;
}

static size_t length_up_to(const char* text, char end) {
  size_t length = 0;
  for (; text[length] && text[length] != end; length++) LOOP;
  return length;
}

static bool has_char(const char* text, char wanted) { return text[length_up_to(text, wanted)] != 0; }

static bool begins_with(const char* text, const char* begin) {
  for (; *begin && *text == *begin; text++, begin++) LOOP;
  return *begin == 0;
}

static bool is_same_text(const char* a, const char* b) { return begins_with(a, b) && begins_with(b, a); }

static char* append(char* out, const char* text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    LOOP;
    out[i] = text[i];
  }
  return out + length;
}

// The part of a path that follows its last slash.
static const char* file_of(const char* path, const char* end) {
  while (end > path && end[-1] != '/') end--;
  return end;
}

// The file's name by which the loader has found us.
const char* own_file_name(void) {
  for (const struct link_map* map = &_r_debug ? _r_debug.r_map : NULL; map; map = map->l_next) {
    if (map->l_ld == _DYNAMIC) return file_of(map->l_name, map->l_name + length_of(map->l_name));
  }
  return "libcmttrace.so";
}

// The kernel's arguments: their count, words, NULL, environment, NULL.
static char** find_words(void) {
  long* const begin = &__libc_stack_end ? __libc_stack_end : NULL;
  if (!begin || *begin < 0) return NULL;
  char** const words = (char**)(begin + 1);
  return words[*begin] ? NULL : words;
}

static char** find_environment(char** words) {
  while (*words) words++;
  return words + 1;
}

// Returns the result of getauxval().
static unsigned long find_auxiliary(char** environment, unsigned long type) {
  while (*environment) environment++;
  const ElfW(auxv_t)* entry = (const ElfW(auxv_t)*)(environment + 1);
  while (entry->a_type != AT_NULL && entry->a_type != type) entry++;
  return entry->a_type == type ? entry->a_un.a_val : 0;
}

// Where the loader was called by its name, `ld.so PROGRAM WORD...`, it has taken its own words away.
static char** read_words(void) {
  char* const text = sys_map(words_bytes_max);
  const long file = text ? sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return NULL;
  long length = 0, got = 1, count = 0;
  while (got > 0 && length < words_bytes_max - 1) {
    got = sys(SYS_read, file, text + length, words_bytes_max - 1 - length);
    if (got > 0) length += got;
  }
  sys(SYS_close, file);
  if (got != 0 || length == 0) return NULL;
  for (const char* at = text; at < text + length; at += length_of(at) + 1) count++;
  char** const words = sys_map((size_t)(count + 1) * sizeof *words);
  char* at = text;
  for (long i = 0; words && i < count; at += length_of(at) + 1) words[i++] = at;
  return words;
}

// Copies the entries of LD_PRELOAD but ours. Returns NULL if none is ours.
static char* without_own_entry(const char* variable, const char* own) {
  char* const copy = sys_map(length_of(variable) + 1);
  bool is_found = false;
  if (!copy) return NULL;
  char* end = append(copy, preload, sizeof preload - 1);
  char* const begin = end;
  for (const char* at = variable + sizeof preload - 1; *at;) {
    const size_t colon = length_up_to(at, ':'), space = length_up_to(at, ' '), length = colon < space ? colon : space;
    const char* const name = file_of(at, at + length);
    const bool is_own = begins_with(name, own) && name + length_of(own) == at + length;
    is_found = is_found || is_own;
    if (length && !is_own) {
      if (end != begin) *end++ = ':';
      end = append(end, at, length);
    }
    at += length;
    at += *at != 0;
  }
  *end = 0;
  return is_found ? copy : NULL;
}

// NULL: it does not name us.
static char** without_us(char** environment) {
  const char* const own = own_file_name();
  size_t count = 0, kept = 0;
  bool is_found = false;
  while (environment[count]) count++;
  char** const copy = sys_map((count + 1) * sizeof *copy);
  if (!copy) return NULL;
  for (size_t i = 0; i < count; i++) {
    char* variable = environment[i];
    if (begins_with(variable, preload)) {
      char* const others = without_own_entry(variable, own);
      is_found = is_found || others;
      if (others && !others[sizeof preload - 1]) continue;
      if (others) variable = others;
    }
    if (!begins_with(variable, own_settings)) copy[kept++] = variable;
  }
  return is_found ? copy : NULL;
}

static bool is_script(const char* path) {
  char begin[2] = {0};
  const long file = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  sys(SYS_read, file, begin, sizeof begin);
  sys(SYS_close, file);
  return begin[0] == '#' && begin[1] == '!';
}

// Returns the words from the script's name on. The kernel has put the interpreter's words before that name, and will do
// so again in its place.
static char** words_of_script(char** words, const char* script) {
  for (int i = 1; i <= scripts_max && words[0] && words[i]; i++) {
    if (is_same_text(words[i], script)) return words + i;
  }
  return NULL;
}

// The name that fexecve has given to a program whose descriptor is closed by now. The process gets its name from it.
static void execute_descriptor(const char* name, char** words, char** environment) {
  long number = 0;
  const char* digit = name + sizeof descriptors - 1;
  for (; *digit >= '0' && *digit <= '9' && number < 1 << 20; digit++) number = number * 10 + *digit - '0';
  if (*digit || sys(SYS_fcntl, number, F_GETFD) >= 0) return;
  const long file = sys_open(own_file, O_PATH | O_CLOEXEC);
  if (file >= 0 && file != number) {
    sys(SYS_dup3, file, number, O_CLOEXEC);
    sys(SYS_close, file);
  }
  sys(SYS_execveat, number, "", words, environment, AT_EMPTY_PATH);
  sys(SYS_close, number);
}

// By the name that was given to the kernel: the process is called after it. A loader that was called by its own
// name has replaced that name.
static void execute(const char* name, char** words, char** environment) {
  LARGE_VARIABLE static char real_name[4096];
  struct stat named, own;
  const bool is_there = name && sys_stat(name, &named) == 0, is_known = sys_stat(own_file, &own) == 0;
  const bool is_same = is_there && is_known && named.st_dev == own.st_dev && named.st_ino == own.st_ino;
  if (is_there && !is_same && is_script(name)) {
    words = words_of_script(words, name);
    if (words) sys(SYS_execve, name, words, environment);
    return;
  }
  if (is_same || (is_there && !is_known)) sys(SYS_execve, name, words, environment);
  if (name && begins_with(name, descriptors)) execute_descriptor(name, words, environment);
  sys(SYS_readlinkat, AT_FDCWD, own_file, real_name, sizeof real_name - 1);
  if (sys_stat(real_name, &named) == 0 && named.st_dev == own.st_dev && named.st_ino == own.st_ino)
    sys(SYS_execve, real_name, words, environment);
  sys(SYS_execve, own_file, words, environment);
}

static struct iovec piece(const char* text, size_t length) { return (struct iovec){(void*)(uintptr_t)text, length}; }

static void write_pieces(long file, const char* before, const char* name, const char* after) {
  const struct iovec line[] = {piece(before, length_of(before)), piece(name, length_up_to(name, '\n')),
                               piece(after, length_of(after))};
  sys(SYS_writev, file, line, sizeof line / sizeof *line);
}

static void report(char** environment, const char* name) {
  static const char what[] = " not_recorded=sanitizer path=";
  char line[64];
  long file = -1;
  for (; *environment; environment++) {
    if (!begins_with(*environment, status)) continue;
    const char* path = *environment + sizeof status - 1;
    if (!has_char(path, '%')) file = sys_open(path + (*path == '-'), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  }
  long process = sys(SYS_getpid, 0), power = 1;
  while (process / power >= 10) power *= 10;
  char* end = append(line, "pid=", 4);
  for (; power; power /= 10) *end++ = (char)('0' + process / power % 10);
  append(end, what, sizeof what);
  if (file >= 0)
    write_pieces(file, line, name, "\n");
  else
    write_pieces(2, "libcmttrace: ", name, " is built with a sanitizer; it goes on untraced\n");
  if (file >= 0) sys(SYS_close, file);
}

void restart_without_us(void) {
  static bool is_tried;
  char** const given = find_words();
  if (is_tried || !given) return;
  is_tried = true;
  char** const environment = find_environment(given);
  const char* const name = (const char*)find_auxiliary(environment, AT_EXECFN);
  char** const words = find_auxiliary(environment, AT_BASE) ? given : read_words();
  char** const kept = without_us(environment);
  if (!kept || !words) return;
  report(environment, name ? name : words[0] ? words[0] : "?");
  execute(name, words, kept);
}
