// Calls that give memory back to the kernel, or that set when an allocator gives it back: malloc_trim, mallopt,
// jemalloc's mallctl, and madvise of the program's own blocks. The real functions are called as without the tracer. A
// malloc_trim is recorded before the real call, whatever it returns. A mallopt or mallctl is recorded after the real
// call, and only if it succeeded.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/program/interpose/interpose.h"
#include "preload/text.h"

HIDDEN __typeof__(mallctl) ours_mallctl;
HIDDEN __typeof__(mallctlbymib) ours_mallctlbymib;
HIDDEN __typeof__(mallctlnametomib) ours_mallctlnametomib;

enum { madvise_dontneed_locked = 24 };  // Linux 5.18

enum { settings_known = 8, depth_max = 8, name_bytes_max = 96, names_max = 64 };

static char* put_signed(char* out, int64_t value) {
  if (value < 0) *out++ = '-';
  return put_decimal(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

EXPORT int malloc_trim(size_t pad) {
  if (!tracer_is_ready() || !real.malloc_trim) return 0;
  if (recording_is_on()) record_long(&(struct Call){.kind = kind_malloc_trim, .size = pad}, NULL);
  return real.malloc_trim(pad);
}

OURS(malloc_trim);

// MADV_FREE is no event: such pages stay in memory until the kernel runs short of it. An allocator's own calls are
// inside of the calls that are guarded.
static bool discards(int advice) { return advice == MADV_DONTNEED || advice == madvise_dontneed_locked; }

EXPORT int madvise(void* begin, size_t bytes, int advice) {
  struct Guard guard;
  if (!tracer_is_ready() || !real.madvise) {
    const long failed = sys(SYS_madvise, begin, bytes, advice);
    if (failed) errno = (int)-failed;
    return failed ? -1 : 0;
  }
  if (!large_blocks_min || !discards(advice) || !guard_enter(&guard, guard_own_use))
    return real.madvise(begin, bytes, advice);
  guard_leave(&guard);
  const bool is_recorded = recording_is_on();
  const struct LargeBlock block = is_recorded ? record_long_pages_before_discard(begin) : (struct LargeBlock){0};
  const int failed = real.madvise(begin, bytes, advice);
  if (!failed && is_recorded && recording_is_on()) record_long_pages_discarded(begin, bytes, &block);
  return failed;
}

OURS(madvise);

// Writes the name of glibc's parameter, or the number of an unknown one.
static char* put_parameter(char* out, int parameter) {
  static const char names[settings_known][20] = {"M_TRIM_THRESHOLD", "M_TOP_PAD", "M_MMAP_THRESHOLD", "M_MMAP_MAX",
                                                 "M_CHECK_ACTION",   "M_PERTURB", "M_ARENA_TEST",     "M_ARENA_MAX"};
  if (parameter == M_MXFAST) return stpcpy(out, "M_MXFAST");
  if (parameter < 0 && parameter >= -settings_known) return stpcpy(out, names[-parameter - 1]);
  return put_signed(out, parameter);
}

EXPORT int mallopt(int parameter, int value) {
  if (!tracer_is_ready() || !real.mallopt) return 0;
  const int is_done = real.mallopt(parameter, value);
  char label[64];
  char* end = put_parameter(label, parameter);
  *end++ = '=';
  *put_signed(end, value) = 0;
  if (is_done && recording_is_on()) record_long_label(kind_mallopt, label);
  return is_done;
}

OURS(mallopt);

// Records the name of a control and the value written to it, if it has 1, 4 or 8 bytes. Such a value is a bool, an
// unsigned int, or a size_t or ssize_t.
static void record_control(const char* name, const void* value, size_t bytes) {
  char label[name_bytes_max + 32];
  const size_t length = strnlen(name, name_bytes_max);
  memcpy(label, name, length);
  char* end = label + length;
  const bool has_number = value && (bytes == 1 || bytes == 4 || bytes == 8);
  if (has_number) *end++ = '=';
  uint64_t number = 0;
  if (has_number) memcpy(&number, value, bytes);
  if (has_number) end = put_signed(end, (int64_t)number);
  *end = 0;
  if (recording_is_on()) record_long_label(kind_mallctl, label);
}

// Calls that only read are not recorded. Neither is a write of "epoch", which refreshes statistics.
static bool is_of_interest(const char* name, const void* old, const void* value) {
  return (value || !old) && strcmp(name, "epoch") != 0;
}

// This one and its kin are not exported: a program that asks by a weak symbol whether there is a mallctl would believe
// that it runs on jemalloc.
int ours_mallctl(const char* name, void* old, size_t* old_bytes, void* value, size_t bytes) {
  const int failed = real.mallctl(name, old, old_bytes, value, bytes);
  if (!failed && is_of_interest(name, old, value)) record_control(name, value, bytes);
  return failed;
}

/// Names that a program has translated to numbers. It may replace the number of an arena in them.
LARGE_VARIABLE static struct ControlName {
  uint32_t is_ready;
  uint32_t depth;
  size_t numbers[depth_max];
  char text[name_bytes_max];
} control_names[names_max];
static uint32_t control_names_used;

static bool is_number(const char* part) { return *part >= '0' && *part <= '9'; }
static const char* next_part(const char* part) {
  const char* dot = strchr(part, '.');
  return dot ? dot + 1 : part + strlen(part);
}

static bool is_named(const struct ControlName* name, const size_t* numbers, size_t depth) {
  if (!__atomic_load_n(&name->is_ready, __ATOMIC_ACQUIRE) || name->depth != depth) return false;
  const char* part = name->text;
  for (size_t i = 0; i < depth; i++, part = next_part(part)) {
    if (!is_number(part) && name->numbers[i] != numbers[i]) return false;
  }
  return true;
}

static const struct ControlName* find_control(const size_t* numbers, size_t depth) {
  for (uint32_t i = 0; i < names_max; i++) {
    if (is_named(&control_names[i], numbers, depth)) return &control_names[i];
  }
  return NULL;
}

int ours_mallctlnametomib(const char* name, size_t* numbers, size_t* depth) {
  const int failed = real.mallctlnametomib(name, numbers, depth);
  if (failed || *depth > depth_max || strlen(name) >= name_bytes_max || find_control(numbers, *depth)) return failed;
  const uint32_t mine = __atomic_fetch_add(&control_names_used, 1, __ATOMIC_RELAXED);
  if (mine >= names_max) return failed;
  struct ControlName* known = &control_names[mine];
  known->depth = (uint32_t)*depth;
  memcpy(known->numbers, numbers, *depth * sizeof *numbers);
  strcpy(known->text, name);
  __atomic_store_n(&known->is_ready, 1, __ATOMIC_RELEASE);
  return failed;
}

// Writes the name, with the numbers of this call instead of those in the translated name.
static void put_name(char* out, const struct ControlName* name, const size_t* numbers) {
  const char* part = name->text;
  const char* limit = out + name_bytes_max - 24;
  for (size_t i = 0; i < name->depth && *part && out < limit; i++) {
    const char* next = next_part(part);
    const size_t length = (size_t)(next - part) - (*next != 0 || next[-1] == '.');
    if (i) *out++ = '.';
    if (is_number(part))
      out = put_decimal(out, numbers[i]);
    else if (out + length < limit)
      out = (char*)memcpy(out, part, length) + length;
    part = next;
  }
  *out = 0;
}

int ours_mallctlbymib(const size_t* numbers, size_t depth, void* old, size_t* old_bytes, void* value, size_t bytes) {
  const int failed = real.mallctlbymib(numbers, depth, old, old_bytes, value, bytes);
  const struct ControlName* known = failed ? NULL : find_control(numbers, depth);
  char name[name_bytes_max];
  if (!known || !is_of_interest(known->text, old, value)) return failed;
  put_name(name, known, numbers);
  record_control(name, value, bytes);
  return failed;
}
