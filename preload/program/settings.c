// Checks the settings of settings_list.h, keeps copies of paths and environment, and creates files by their templates.
#include "preload/program/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/program/hooks/find.h"
#include "preload/program/kernel.h"
#include "preload/program/unwind/unwind.h"
#include "preload/text.h"

enum { numbers_max = 100000, variables_max = 4096, shown_bytes_max = 64 };

LARGE_VARIABLE static char templates[paths_max][output_path_bytes];
static uint32_t given_paths;  // a bit for each: looking at a template that is not given would touch a page
static uint32_t trace_paths;
LARGE_VARIABLE static char folder[output_path_bytes];
static char program[256] = "program";
static bool is_named;  // by settings_attach()
LARGE_VARIABLE static char status_file[output_path_bytes];
static bool status_exists, reports_children;
static uint64_t launcher;  // CMTTRACE_OUT_OF; 0: not given
LARGE_VARIABLE static char collector[output_path_bytes];
static long collector_fault = -ENOENT;
static char** environment;
static const char* attached;  // settings in place of the environment's variables: "NAME=VALUE\0…\0\0"

extern char** environ;

/// The values of a setting: a number with units, words to choose from, or both; or a path, or several with commas
/// between them.
struct Form {
  const struct Unit* units;
  const char* words[4];
  uint64_t least;  ///< in its units
  uint64_t most;   ///< 0: any
  uint32_t paths_max;
  bool is_of_attached;  ///< it says nothing to a tracer that is preloaded
  bool is_keep;         ///< what read_keep() reads
  bool is_list;         ///< several words with commas between them
  bool is_keep_at;      ///< what read_keep_at() reads
};
static const struct Form forms[] = {
    [form_paths] = {.paths_max = outputs_max},
    [form_path] = {.paths_max = 1},
    [form_on] = {.words = {"0", "1"}},
    [form_step] = {.words = {"0", "1"}, .units = units_of_period, .least = time_step_ns_min},
    [form_stamps] = {.words = {"all", has_sparse_stamps ? "sparse" : NULL}},
    [form_frames] = {.units = units_of_count, .least = 1, .most = setting_frames_max},
    [form_interpreters] = {.words = {"auto", "none"}},
    [form_pool] = {.words = {"python", "heaptrack", "own"}, .is_list = true},
    [form_paused] = {.words = {"paused"}},
    [form_duration] = {.units = units_of_time},
    [form_interval] = {.units = units_of_size, .least = sample_bytes_min, .most = sample_bytes_max},
    [form_touched] = {.words = {"0", "off", "auto"}, .units = units_of_size, .least = block_page_bytes},
    [form_keep] = {.is_keep = true},
    [form_mark] = {.is_keep_at = true},
    [form_bytes] = {.units = units_of_size},
    [form_count] = {.units = units_of_count},
    [form_files] = {.units = units_of_count, .least = 1},
    [form_size_limit] = {.units = units_of_size, .least = 1},
    [form_count_limit] = {.units = units_of_count, .least = 1},
    [form_time_limit] = {.units = units_of_time, .least = 1},
    [form_full] = {.words = {"wait", "drop"}},
    [form_follow] = {.words = {"0", "1"}, .is_of_attached = true},
};
static_assert((int)setting_frames_max == (int)unwind_limit_max, "the unwinder has room for a stack of the most frames");

static const uint8_t form_of_setting[settings_count] = {
#define CMT_SETTING(name, variable, option, form, ...) form_##form,
    CMT_SETTINGS(CMT_SETTING)
#undef CMT_SETTING
};
static const char* const defaults[settings_count] = {
#define CMT_SETTING(name, variable, option, form, otherwise, ...) otherwise,
    CMT_SETTINGS(CMT_SETTING)
#undef CMT_SETTING
};

static const char* next_attached(const char* entry) { return entry + strlen(entry) + 1; }

static void copy(char* out, size_t room, const char* text, size_t length) {
  must(room != 0);
  if (length >= room) length = room - 1;
  memcpy(out, text, length);
  out[length] = 0;
}

void settings_attach(const char* settings, const char* name) {
  attached = settings;
  is_named = *name != 0;
  if (is_named) copy(program, sizeof program, name, strlen(name));
  trace_paths = 0;
  collector[0] = 0;
  environment = NULL;  // 4 KiB of an earlier attach are lost, if it has recorded children
}

const char* setting_value(enum Setting setting) {
  must(setting < settings_count);
  const char* name = setting_names[setting];
  if (!attached) return getenv(name);
  const size_t length = strlen(name);
  for (const char* entry = attached; *entry; entry = next_attached(entry)) {
    if (strncmp(entry, name, length) == 0 && entry[length] == '=') return entry + length + 1;
  }
  return NULL;
}

bool setting_is(enum Setting setting, const char* value) {
  const char* found = setting_value(setting);
  return found && strcmp(found, value) == 0;
}

bool setting_is_given(enum Setting setting) {
  const char* found = setting_value(setting);
  return found && *found;
}

static uint64_t setting_in(const struct Unit* units, enum Setting setting) {
  uint64_t number;
  const char* found = setting_value(setting);
  if (found && read_quantity(found, units, &number)) return number;
  return read_quantity(defaults[setting], units, &number) ? number : 0;
}

uint64_t setting_number(enum Setting setting) { return setting_in(units_of_count, setting); }
uint64_t setting_bytes(enum Setting setting) { return setting_in(units_of_size, setting); }

/// The next of the texts between commas, or NULL after the last.
static const char* next_item(const char** rest, size_t* length) {
  const char* item = *rest;
  if (*item == 0) return NULL;
  *length = strcspn(item, ",");
  *rest = item + *length + (item[*length] == ',');
  return item;
}

static bool are_paths(const char* value, uint32_t count_max) {
  if (count_max == 1) return strlen(value) < output_path_bytes / 2;
  uint32_t paths = 0;
  for (size_t length; next_item(&value, &length);) {
    if (length >= output_path_bytes / 2 || (length && ++paths > count_max)) return false;
  }
  return true;
}

static bool is_same(const char* word, const char* text, size_t length) {
  return strlen(word) == length && memcmp(word, text, length) == 0;
}

static bool is_word(const struct Form* form, const char* text, size_t length) {
  const char* const* word = form->words;
  while (*word && !is_same(*word, text, length)) word++;
  return *word != NULL;
}

static bool are_words(const struct Form* form, const char* list) {
  size_t length;
  for (const char* word; (word = next_item(&list, &length));) {
    if (!is_word(form, word, length)) return false;
  }
  return true;
}

bool setting_has(enum Setting setting, const char* word) {
  const char* list = setting_value(setting);
  size_t length;
  for (const char* item; list && (item = next_item(&list, &length));) {
    if (is_same(word, item, length)) return true;
  }
  return false;
}

static bool is_understood(const struct Form* form, const char* value) {
  uint64_t number;
  struct Keep keep;
  struct KeepAt at;
  if (*value == 0) return true;  // as if it were not set
  if (form->is_list) return are_words(form, value);
  if (is_word(form, value, strlen(value))) return true;
  if (form->units && read_quantity(value, form->units, &number))
    return number >= form->least && (form->most == 0 || number <= form->most);
  if (form->is_keep) return read_keep(value, &keep);
  if (form->is_keep_at) return read_keep_at(value, &at);
  return form->paths_max && are_paths(value, form->paths_max);
}

static bool is_zero_refused(const struct Form* form, const char* value) {
  uint64_t number;
  return form->units && form->least == 1 && read_quantity(value, form->units, &number) && number == 0;
}

static const char* line_about(const struct Form* form, const char* name, size_t length, const char* value) {
  static char line[256];
  memcpy(line, name, length);
  if (is_zero_refused(form, value)) {
    strcpy(line + length, " must be above 0");
    return line;
  }
  char* end = stpcpy(line + length, " cannot be '");
  size_t shown = strnlen(value, shown_bytes_max);
  memcpy(end, value, shown);
  stpcpy(end + shown, shown == shown_bytes_max ? "...'" : "'");
  return line;
}

static const char* fault_of(const char* entry) {
  size_t length = strcspn(entry, "=");
  const char* value = entry + length + (entry[length] == '=');
  const char* why = " is not a variable that the tracer knows";
  if (length > shown_bytes_max) length = shown_bytes_max;
  for (int setting = 0; setting < settings_count; setting++) {
    const struct Form* form = &forms[form_of_setting[setting]];
    if (strlen(setting_names[setting]) != length || memcmp(setting_names[setting], entry, length) != 0) continue;
    if (form->is_of_attached && !attached) {
      why = " is for programs that cmttrace has attached to";
      break;
    }
    return is_understood(form, value) ? NULL : line_about(form, entry, length, value);
  }
  static char line[128];
  memcpy(line, entry, length);
  stpcpy(line + length, why);
  return line;
}

static bool is_setting(const char* variable) { return strncmp(variable, "CMTTRACE_", 9) == 0; }

// A flight recorder writes one .cmt, and nothing before it is asked to.
static const char* fault_of_keep(void) {
  const char* out = getenv(setting_names[setting_out]);
  const size_t length = out ? strlen(out) : 0;
  if (length < 4 || strcmp(out + length - 4, ".cmt") != 0 || strchr(out, ','))
    return "CMTTRACE_KEEP needs CMTTRACE_OUT to be one path that ends in .cmt";
  if (setting_is_given(setting_rings)) return "CMTTRACE_KEEP cannot go with CMTTRACE_RINGS";
  if (setting_is_given(setting_max_bytes)) return "CMTTRACE_KEEP cannot go with CMTTRACE_MAX_BYTES";
  return NULL;
}

// A sampled trace has no text form.
bool settings_want_no_trace(void) { return setting_is(setting_out, CMT_NO_TRACE) && setting_is_given(setting_pprof); }

static const char* fault_of_no_trace(void) {
  if (setting_is_given(setting_rings)) return "CMTTRACE_RINGS needs a trace";
  return setting_is_given(setting_max_bytes) ? "CMTTRACE_MAX_BYTES needs a trace" : NULL;
}

static const char* fault_of_sampling(void) {
  const char* out = getenv(setting_names[setting_out]);
  const char* list = out ? out : defaults[setting_out];
  size_t length;
  for (const char* path; (path = next_item(&list, &length));) {
    if (length != 0 && !settings_want_no_trace() && (length < 4 || strncmp(path + length - 4, ".cmt", 4) != 0))
      return "CMTTRACE_SAMPLE_BYTES needs the paths of CMTTRACE_OUT to end in .cmt";
  }
  if (setting_is_given(setting_pool)) return "CMTTRACE_SAMPLE_BYTES cannot go with CMTTRACE_POOL";
  if (setting_is_given(setting_touched)) return "CMTTRACE_SAMPLE_BYTES cannot go with CMTTRACE_TOUCHED";
  if (setting_is_given(setting_keep)) return "CMTTRACE_SAMPLE_BYTES cannot go with CMTTRACE_KEEP";
  if (setting_is(setting_on_full, "drop")) return "CMTTRACE_SAMPLE_BYTES cannot go with CMTTRACE_ON_FULL=drop";
  return NULL;
}

const char* settings_fault(void) {
  const char* fault = NULL;
  if (attached) {
    for (const char* entry = attached; *entry && !fault; entry = next_attached(entry)) fault = fault_of(entry);
    return fault;
  }
  for (char** entry = environ; entry && *entry && !fault; entry++) {
    if (is_setting(*entry)) fault = fault_of(*entry);
  }
  if (!fault && setting_is_given(setting_sample_bytes)) fault = fault_of_sampling();
  if (!fault && settings_want_no_trace()) fault = fault_of_no_trace();
  if (!fault && setting_is_given(setting_pprof_every) && !setting_is_given(setting_pprof))
    fault = "CMTTRACE_PPROF_EVERY needs CMTTRACE_PPROF";
  if (!fault && setting_is_given(setting_pprof_files) && !setting_is_given(setting_pprof))
    fault = "CMTTRACE_PPROF_FILES needs CMTTRACE_PPROF";
  if (!fault && setting_is_given(setting_keep_at) && !setting_is_given(setting_keep))
    fault = "CMTTRACE_KEEP_AT needs CMTTRACE_KEEP";
  return fault || !setting_is_given(setting_keep) ? fault : fault_of_keep();
}

static bool is_collector(const char* beside, size_t length, const char* rest) {
  if (length + strlen(rest) >= sizeof collector) return false;
  memcpy(collector, beside, length);
  strcpy(collector + length, rest);
  const long failed = sys_access(collector, X_OK);
  if (failed == 0) return true;
  if (collector_fault == -ENOENT) collector_fault = failed;
  collector[0] = 0;
  return false;
}

static void find_collector(void) {
  const char* given = setting_value(setting_collector);
  const char* own = find_module(templates);
  if (given) {
    is_collector(given, strlen(given), "");
    return;
  }
  if (!own) return;
  const char* slash = strrchr(own, '/');
  size_t length = slash ? (size_t)(slash - own) + 1 : 0;
  if (is_collector(own, length, "cmttrace-collector")) return;
  if (is_collector(own, length, "../libexec/cmt/cmttrace-collector")) return;
  is_collector(own, length, "../../libexec/cmt/cmttrace-collector");
}

// musl's libraries would be in the way of the collector, which is a program for glibc.
static bool is_for_loader(const char* variable) {
  const bool has_path = strncmp(variable, "LD_LIBRARY_PATH=", 16) == 0 && !libc_is_musl();
  return strncmp(variable, "LD_", 3) == 0 && !has_path;
}

// Calls take(variable, argument) for each of the collector's variables.
static void visit_variables(void (*take)(const char*, void*), void* argument) {
  size_t count = 0;
  for (char** v = environ; v && *v && count < variables_max; v++, count++) {
    if (!is_for_loader(*v) && !(attached && is_setting(*v))) take(*v, argument);
  }
  if (!attached) return;
  for (const char* entry = attached; *entry; entry = next_attached(entry)) take(entry, argument);
}

struct Copy {
  size_t count, bytes;
  char** next;
  char* text;
};

static void count_variable(const char* variable, void* argument) {
  struct Copy* copy = argument;
  copy->count++;
  copy->bytes += strlen(variable) + 1;
}

static void take_variable(const char* variable, void* argument) {
  struct Copy* copy = argument;
  const size_t bytes = strlen(variable) + 1;
  if (copy->count == 0 || bytes > copy->bytes) return;  // others were added meanwhile
  *copy->next++ = memcpy(copy->text, variable, bytes);
  copy->text += bytes;
  copy->bytes -= bytes;
  copy->count--;
}

// The strings are copied too: servers write their state over them (setproctitle), and may fork after that.
static void copy_environment(void) {
  struct Copy copy = {0};
  visit_variables(count_variable, &copy);
  environment = sys_map((copy.count + 1) * sizeof(char*) + copy.bytes);
  if (!environment) return;
  copy.next = environment;
  copy.text = (char*)(environment + copy.count + 1);
  visit_variables(take_variable, &copy);
}

static void read_for_collector(void) {
  find_collector();
  copy_environment();
}

const char* collector_program(void) {
  if (!environment) read_for_collector();
  return collector;
}

long collector_missing_error(void) { return collector_fault; }

char** collector_environment(void) {
  if (!environment) read_for_collector();
  return environment;
}

static void copy_template(uint32_t which, const char* value, size_t length) {
  if (!length) return;
  copy(templates[which], output_path_bytes, value, length);
  given_paths |= 1u << which;
}

static void copy_trace_paths(const char* list) {
  size_t length;
  trace_paths = 0;
  for (const char* path; trace_paths < outputs_max && (path = next_item(&list, &length));) {
    if (length) copy_template(trace_paths++, path, length);
  }
}

// "-t/status" is a path after its first character.
static size_t marks_before(enum Setting setting, const char* path) { return setting == setting_status && *path == '-'; }

static void copy_path(uint32_t which, enum Setting setting) {
  const char* value = setting_value(setting);
  const size_t marks = value ? marks_before(setting, value) : 0;
  if (value) copy_template(which, value + marks, strlen(value) - marks);
}

static void read_paths(void) {
  given_paths = 0;
  const char* list = setting_value(setting_out);
  copy_trace_paths(list ? list : "");
  if (!trace_paths) copy_trace_paths(defaults[setting_out]);
  copy_path(path_rings, setting_rings);
  copy_path(path_control, setting_control);
  copy_path(path_status, setting_status);
  copy_path(path_pprof, setting_pprof);
  const char* status = setting_value(setting_status);
  status_exists = status && marks_before(setting_status, status);
  const char* parent = setting_value(setting_out_of);
  if (!parent || !read_quantity(parent, units_of_count, &launcher)) launcher = 0;
  // A child that changes its folder still writes to where its parent began.
  if (sys(SYS_getcwd, folder, sizeof folder - 1) <= 0 || folder[0] != '/') folder[0] = 0;
  const char* own = program_invocation_short_name;
  if (!is_named && own && *own) copy(program, sizeof program, own, strlen(own));
  reports_children = !attached && (given_paths >> path_status & 1) && !setting_is_given(setting_child_of);
  status_file[0] = 0;
}

static char* put_absolute(char* out, const char* path, size_t length) {
  if (*path != '/') {
    for (const char* at = folder; *at; at++) {
      if (*at == '%') *out++ = '%';
      *out++ = *at;
    }
    if (out[-1] != '/') *out++ = '/';
  }
  memcpy(out, path, length);
  return out + length;
}

// Returns "NAME=VALUE" with absolute paths. NULL: they are, there is no memory, or they are too long.
static char* with_absolute_paths(enum Setting setting, const char* value) {
  const bool is_list = setting == setting_out;
  const char* path = value + marks_before(setting, value);
  bool is_relative = false;
  size_t paths = 1;
  for (const char* at = path; *at; at++) {
    const bool is_begin = at == path || (is_list && at[-1] == ',');
    is_relative = is_relative || (is_begin && *at != '/' && *at != ',');
    paths += *at == ',';
  }
  const char* name = setting_names[setting];
  char* const variable = is_relative ? sys_map(strlen(name) + strlen(value) + paths * 2 * sizeof folder + 3) : NULL;
  if (!variable) return NULL;
  char* end = stpcpy(stpcpy(variable, name), path == value ? "=" : "=-");
  while (*path) {
    const size_t length = is_list ? strcspn(path, ",") : strlen(path);
    if (length) end = put_absolute(end, path, length);
    path += length;
    if (*path == ',') *end++ = *path++;
  }
  *end = 0;
  return end - variable < output_path_bytes / 2 ? variable : NULL;  // longer ones would be refused
}

void settings_make_paths_absolute(void) {
  static const enum Setting settings[] = {setting_out, setting_control, setting_rings, setting_status, setting_pprof};
  for (size_t i = 0; folder[0] && i < sizeof settings / sizeof *settings; i++) {
    const char* name = setting_names[settings[i]];
    const size_t length = strlen(name);
    for (char** entry = environ; entry && *entry; entry++) {
      if (strncmp(*entry, name, length) != 0 || (*entry)[length] != '=') continue;
      char* const variable = with_absolute_paths(settings[i], *entry + length + 1);
      if (variable) *entry = variable;
    }
  }
}

void settings_read(void) {
  read_paths();
  status_path();
  read_for_collector();
}

const char* program_name(void) { return program; }

uint32_t trace_path_count(void) {
  if (!trace_paths) read_paths();
  return trace_paths;
}

bool status_must_exist(void) { return status_exists; }

bool path_is_given(uint32_t which) {
  must(which < paths_max);
  if (!trace_paths) read_paths();
  return (given_paths >> which & 1) != 0;
}

// The name of a program may have characters that a launcher reads in no path. Where a title has been written over it,
// it may name another folder.
static char* put_program(char* out) {
  for (const char* at = program; *at; at++) *out++ = (unsigned char)*at < ' ' || *at == 0x7f || *at == '/' ? '_' : *at;
  return out;
}

static char* fill_template(char* out, const char* end, const char* template, int process) {
  for (const char* t = template; *t; t++) {
    if (end - out < (long)sizeof program) return NULL;
    if (t[0] == '%' && t[1] == 'p')
      out = put_decimal(out, (uint64_t)process), t++;
    else if (t[0] == '%' && t[1] == 'n')
      out = put_program(out), t++;
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
  if (dot - name > 3 && strcmp(dot, ".gz") == 0 && strncmp(dot - 3, ".pb", 3) == 0) dot -= 3;
  char number[24] = ".";
  size_t length = (size_t)(put_decimal(number + 1, (uint64_t)n) - number);
  memmove(dot + length, dot, (size_t)(end - dot) + 1);
  memcpy(dot, number, length);
}

static bool is_fixed(uint32_t which) { return !strstr(templates[which], "%n") && !strstr(templates[which], "%p"); }

/// Whether the path is of a trace or profile whose name this process shares with others.
static bool is_shared(uint32_t which) {
  return path_is_given(which) && (which < outputs_max || which == path_pprof) && launcher && is_fixed(which);
}

static bool is_first_process(void) { return sys(SYS_getppid) == (long)launcher; }

// `in_name`: a process id that is inserted before the ending; 0: none.
static bool expand(char out[output_path_bytes], uint32_t which, int process, int in_name, int n) {
  out[0] = 0;
  if (!path_is_given(which)) return false;
  char* name = out;
  if (templates[which][0] != '/' && folder[0]) {
    if (strlen(folder) > output_path_bytes / 2) return false;
    name = stpcpy(stpcpy(out, folder), folder[1] ? "/" : "");
  }
  char* end = fill_template(name, out + output_path_bytes - 64, templates[which], process);
  if (end && in_name) insert_number(name, end, in_name), end += strlen(end);
  if (end && n) insert_number(name, end, n);
  return end != NULL;
}

static int pid_in_name(uint32_t which, int process) { return is_shared(which) && !is_first_process() ? process : 0; }

bool path_expand(char out[output_path_bytes], uint32_t which, int process) {
  return expand(out, which, process, pid_in_name(which, process), 0);
}

// Filled in once if it is the same for all processes, as a launcher's is. Then other threads may be here too.
const char* status_path(void) {
  if (!path_is_given(path_status)) return NULL;
  if (status_file[0] && is_fixed(path_status)) return status_file;
  return expand(status_file, path_status, (int)sys(SYS_getpid), 0, 0) ? status_file : NULL;
}

bool children_are_reported(void) { return reports_children; }

static long error_of_taken(const char* path) {
  struct stat status;
  if (sys_stat(path, &status) != 0 || S_ISREG(status.st_mode)) return 0;
  return S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST;
}

long path_move_aside(char out[output_path_bytes], uint32_t which, int process) {
  LARGE_VARIABLE static char own[output_path_bytes];
  struct stat status;
  if (!is_shared(which) || !is_first_process() || !expand(own, which, process, 0, 0)) return -ENOENT;
  if (sys_stat(own, &status) != 0 || !S_ISREG(status.st_mode)) return -ENOENT;
  long failed = -EEXIST;
  for (int n = 1; failed == -EEXIST && n <= numbers_max; n++) {
    if (!expand(out, which, process, process, n)) return -ENAMETOOLONG;
    failed = sys(SYS_renameat2, AT_FDCWD, own, AT_FDCWD, out, 1 /* RENAME_NOREPLACE */);
  }
  return failed;
}

long path_create(char out[output_path_bytes], uint32_t which, int process, uint32_t mode) {
  const int in_name = pid_in_name(which, process);
  long fd = -EEXIST;
  for (int n = 1; fd == -EEXIST && n <= numbers_max; n++) {
    if (!expand(out, which, process, in_name, n > 1 ? n : 0)) return -ENAMETOOLONG;
    fd = sys_open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd == -EEXIST && error_of_taken(out)) return error_of_taken(out);
  }
  if (fd >= 0) sys(SYS_fchmod, fd, mode);  // a umask may take the owner's own rights
  return fd;
}
