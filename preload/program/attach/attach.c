// Attaches, detaches and releases as attach.h describes, and reports each step to cmttrace in the shared struct Attach.
#include "preload/program/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "preload/attach.h"
#include "preload/program/hooks/find.h"
#include "preload/program/hooks/hooks.h"
#include "preload/program/hooks/loads.h"
#include "preload/program/interpose/interpose.h"
#include "preload/program/rings.h"
#include "preload/program/settings.h"
#include "preload/text.h"

EXPORT int cmttrace_attach(int file);
EXPORT int cmttrace_detach(void);
EXPORT int cmttrace_release(void);

enum { wait_ms = 100 /* of wait_timed_out */, tries_max = 20 };

static const struct timespec millisecond = {.tv_nsec = 1000000};

static bool was_attached;      // this library came so, and was not preloaded
static struct Attach* shared;  // NULL: released
static uint32_t shared_with;   // the process that has mapped it; a forked child has it too
LARGE_VARIABLE static char settings[attach_settings_bytes + 2];
static char last_message[attach_message_bytes];  // when nobody reads it any more

static bool is_shared(void) { return shared && shared_with == process_id(); }

static void set_state(enum AttachState state) {
  if (!is_shared()) return;
  __atomic_store_n(&shared->state, state, __ATOMIC_RELEASE);
  sys(SYS_futex, &shared->state, FUTEX_WAKE, INT32_MAX);
}

static void unmap_shared(void) {
  keep_messages(last_message, sizeof last_message);
  if (shared) sys(SYS_munmap, shared, attach_bytes);
  shared = NULL;
}

// Closes the file.
static long map_shared(int file) {
  struct stat status = {0};
  long failed = sys(SYS_fstat, file, &status);
  if (!failed && (status.st_size < (off_t)attach_bytes || status.st_size % 4096)) failed = -EINVAL;
  const long begin =
      failed ? failed
             : sys(SYS_mmap, 0, attach_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, status.st_size - attach_bytes);
  sys(SYS_close, file);
  if (begin < 0 && begin > -4096) return begin;
  struct Attach* mapped = (struct Attach*)begin;
  if (memcmp(mapped->magic, attach_magic, sizeof mapped->magic) != 0) {
    sys(SYS_munmap, mapped, attach_bytes);
    return -EINVAL;
  }
  unmap_shared();  // of a recording that was not released
  shared = mapped;
  shared->process = shared_with = process_id();
  memset(shared->message, 0, sizeof shared->message);
  keep_messages(shared->message, sizeof shared->message);
  return 0;
}

static int fail(const char* why, const char* detail, int error) {
  write_message(why, detail, 0);
  set_state(attach_failed);
  unmap_shared();
  return -error;
}

static const char* read_settings(void) {
  memcpy(settings, shared->settings, attach_settings_bytes);  // two zeros remain after it
  char name[attach_program_bytes + 1] = {0};
  memcpy(name, shared->program, attach_program_bytes);
  settings_attach(settings, name);
  if (setting_is_given(setting_rings)) return "CMTTRACE_RINGS is not for a program that is attached to";
  return settings_fault();
}

static bool are_rings_taken(void) {
  shared->rings_fd = rings_descriptor();
  set_state(attach_has_rings);
  for (int tries = 0; tries < attach_wait_ms / wait_ms; tries++) {
    if (__atomic_load_n(&shared->rings_taken, __ATOMIC_ACQUIRE)) break;
    wait_timed_out(&shared->rings_taken, 0, 1);
  }
  rings_close_descriptor();
  return __atomic_load_n(&shared->rings_taken, __ATOMIC_ACQUIRE) != 0;
}

// Another thread may be about to load a module.
static struct HookReport change_words(void) {
  struct HookReport report = hooks_replace(hooks_of_all);
  for (int tries = 0; report.is_unfinished && tries < tries_max; tries++) {
    const uint32_t bypasses = report.bypasses;
    sys(SYS_nanosleep, &millisecond, NULL);
    report = hooks_replace(hooks_of_all);
    if (report.bypasses < bypasses) report.bypasses = bypasses;
  }
  return report;
}

static void report_hooks(const struct HookReport* report) {
  shared->words = report->words;
  loads_report(report);
  if (report->refused) write_message("some words could not be changed, and the calls by them are not seen", "", 0);
  if (report->is_unfinished) write_message("the loader was at work: calls by the last module may not be seen", "", 0);
  if (report->bypasses) write_message("calls of another allocator are not seen, such as those by ", report->bypass, 0);
}

static int attach(int file) {
  const long failed = map_shared(file);
  if (failed) return (int)failed;
  if (!was_attached) return fail("the tracer is preloaded", "", EALREADY);
  if (shared->thread_word_at) thread_word_at = shared->thread_word_at;
  if (attached_is_on()) return fail("the program is being recorded", "", EALREADY);
  const char* fault = read_settings();
  if (!fault) fault = attached_begin();
  if (fault) return fail(fault, "", EINVAL);
  if (!are_rings_taken()) {
    attached_release();
    return fail("nobody has taken the rings", "", ETIMEDOUT);
  }
  const struct HookReport report = change_words();
  report_hooks(&report);
  if (report.words == 0) {
    attached_end();
    attached_release();
    return fail("no module calls the allocator by a word that can be changed", "", ENOENT);
  }
  attached_resume();
  set_state(attach_recording);
  return 0;
}

static int detach(void) {
  if (!was_attached) return -EPERM;
  attached_end();
  for (int tries = 0; !hooks_restore(); tries++) {
    if (tries == tries_max) return -EAGAIN;
    sys(SYS_nanosleep, &millisecond, NULL);
  }
  set_state(attach_detached);
  return 0;
}

static int release(void) {
  if (!was_attached) return -EPERM;
  if (attached_is_on()) return -EBUSY;
  attached_release();
  set_state(attach_released);
  unmap_shared();
  return 0;
}

// A signal handler could fork within, or call malloc while half of the words are changed.
#define WITHOUT_SIGNALS(call) \
  const int saved = errno;    \
  uint64_t before;            \
  block_signals(&before);     \
  const int result = call;    \
  restore_signals(&before);   \
  errno = saved;              \
  return result

int cmttrace_attach(int file) { WITHOUT_SIGNALS(attach(file)); }
int cmttrace_detach(void) { WITHOUT_SIGNALS(detach()); }
int cmttrace_release(void) { WITHOUT_SIGNALS(release()); }

// The number of the file in "/proc/self/fd/N", or -1.
static int file_of(const char* path) {
  static const char folder[] = "/proc/self/fd/";
  uint64_t number;
  if (!path || strncmp(path, folder, sizeof folder - 1) != 0) return -1;
  return read_quantity(path + sizeof folder - 1, units_of_count, &number) && number <= INT32_MAX ? (int)number : -1;
}

bool attach_has_begun(void) {
  const int file = tracer_state == tracer_not_started ? file_of(find_module(settings)) : -1;
  if (file < 0) return false;
  was_attached = true;
  cmttrace_attach(file);
  return true;
}
