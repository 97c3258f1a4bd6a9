// Text goes into a mapped window of the file's end (window.h), so that a process that is killed, or dies of a signal
// as `git log | head` does, loses nothing: its file has all lines, then NULs up to the window's end, and no end line.
// An end that passes through libc (exit, _exit, exec, abort, a failed assertion) cuts the NULs off and adds the end
// line. Where the file cannot be mapped or its space not be reserved, and once the process has begun to end, a plain
// buffer is written at offsets of our own instead.
//
// The end line can be taken back when an event follows it (a failed exec, late destructors): it is written over.
//
// For .cmt the buffer is memory shared with the collector, which fetches from there what was not sent in time.
//
// The descriptor is a high one, and before each use it is looked at: a program that closes all its descriptors may
// have put a file of its own there. Then ours is opened again by its name.
#include "preload/output.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "preload/collector_link.h"
#include "preload/header.h"
#include "preload/line.h"
#include "preload/name.h"
#include "preload/record.h"
#include "preload/sys.h"
#include "preload/window.h"

enum { plain_bytes = collector_buffer_bytes, end_bytes_max = collector_end_bytes_max, parts_max = 100000 };

struct Identity {
  uint64_t device;
  uint64_t inode;
};

static char plain_buffer[plain_bytes + end_bytes_max];

static struct {
  char* buffer;  // plain_buffer, a window, or what is shared with the collector
  size_t used;
  size_t room;
  uint64_t offset;      // of the buffer's begin in the file
  size_t window_bytes;  // of the next one
  uint64_t repairs;
  int fd;
  int process;
  bool opened;
  bool configured;
  bool compact;      // through the collector
  bool end_in_file;  // an end line stands at `offset`
  struct Identity identity;
  char path[path_bytes_max];
} out = {.buffer = plain_buffer, .room = plain_bytes, .fd = -1};

static struct Identity standard_error;

static struct Identity identity_of(int fd) {
  struct stat status;
  if (sys(SYS_fstat, fd, &status) != 0) return (struct Identity){0, 0};
  return (struct Identity){status.st_dev, status.st_ino};
}

static bool same(struct Identity a, struct Identity b) { return a.device == b.device && a.inode == b.inode; }

void say(const char* what, const char* detail, long error) {
  if (standard_error.inode && !same(standard_error, identity_of(2))) return;
  static char line[path_bytes_max + 512];  // not on the stack: a thread's may be small
  char* end = line_text(line_text(line_text(line, "libcmttrace: "), what), detail);
  if (error) end = line_text(line_decimal(line_text(end, " (error "), (uint64_t)error), ")");
  *end++ = '\n';
  sys(SYS_write, 2, line, end - line);
}

static void use_plain_buffer(void) {
  out.buffer = plain_buffer;
  out.room = plain_bytes;
  out.used = 0;
}

void output_begin_process(void) {
  if (out.opened && out.fd >= 0 && same(out.identity, identity_of(out.fd))) sys(SYS_close, out.fd);
  if (!standard_error.inode) standard_error = identity_of(2);
  window_close();
  collector_forget();
  use_plain_buffer();
  out.offset = out.repairs = 0;
  out.window_bytes = window_bytes_min;  // most processes are short
  out.fd = -1;
  out.opened = out.compact = out.end_in_file = false;
  out.process = (int)sys(SYS_getpid, 0);
}

bool output_is_ours(void) { return out.process == (int)sys(SYS_getpid, 0); }

void output_configure(void) {
  name_configure();
  collector_configure();
  out.configured = true;
}

int output_descriptor(void) { return out.fd; }

void output_count_repair(void) { out.repairs++; }

static bool send_all(const char* bytes, size_t count, uint64_t offset) {
  while (count) {
    long done = out.compact ? sys(SYS_sendto, out.fd, bytes, count, MSG_NOSIGNAL)
                            : sys(SYS_pwrite64, out.fd, bytes, count, offset);
    if (done == -EINTR) continue;
    if (done <= 0) {
      record_stop("cannot go on writing ", out.path, -done);
      return false;
    }
    bytes += done;
    count -= (size_t)done;
    offset += (uint64_t)done;
  }
  return true;
}

// Out of the way of programs that count on low numbers, or close the first so many.
static int raise_descriptor(int fd) {
  static const int floors[] = {900, 500, 200, 100, 50};
  for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
    long high = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, floors[i]);
    if (high < 0) continue;
    sys(SYS_close, fd);
    return (int)high;
  }
  return fd;
}

static long create(void) {
  long fd = -EEXIST;
  for (int n = 1; fd == -EEXIST && n <= parts_max; n++) {
    if (!name_expand(out.path, out.process, n)) return -ENAMETOOLONG;
    fd = sys(SYS_open, out.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  return fd;
}

// The file becomes the collector's; ours is then the socket to it.
static long hand_over(long file) {
  long link = collector_start((int)file);
  if (link < 0) {
    say("cannot start the collector; text goes to ", strcat(out.path, ".trace"), -link);
    sys(SYS_close, file);
    return sys(SYS_open, out.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  sys(SYS_close, file);
  out.compact = true;
  return link;
}

static void write_header(void) {
  char* room = sys_map(header_bytes_max);
  size_t length = room ? (size_t)(header_write(room, out.process) - room) : 0;
  if (!room) record_stop("no memory for the header of ", out.path, 0);
  if (room && send_all(room, length, 0)) out.offset = length;
  if (room) sys_unmap(room, header_bytes_max);
}

static bool find_file_again(void) {
  if (same(out.identity, identity_of(out.fd))) return true;
  long fd = out.compact ? -EBADF : sys(SYS_open, out.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 && !same(out.identity, identity_of((int)fd))) {
    sys(SYS_close, fd);
    fd = -ENOENT;
  }
  out.fd = fd < 0 ? -1 : raise_descriptor((int)fd);
  if (fd < 0) record_stop("the program closed the way to ", out.path, -fd);
  return fd >= 0;
}

// Writing past RLIMIT_FSIZE would send the program a signal.
static bool fits(size_t bytes) {
  struct rlimit limit;
  if (out.compact || sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) != 0) return true;
  return limit.rlim_cur == RLIM_INFINITY || out.offset + bytes <= limit.rlim_cur;
}

// The collector is told of an end between NULs, and drops it when something follows.
static char* end_line(char* at, enum Ending ending) {
  if (out.compact) *at++ = 0;
  if (out.repairs) {
    at = line_decimal(line_text(at, "#cmt repairs="), out.repairs);
    *at++ = '\n';
  }
  at = line_text(at, ending == end_complete ? "#cmt end=complete\n" : "#cmt end=truncated\n");
  if (out.compact) *at++ = 0;
  return at;
}

static void was_sent(size_t bytes) {
  struct CollectorShared* shared = collector_shared();
  if (!shared) return;
  __atomic_store_n(&shared->used, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&shared->sent, shared->sent + bytes, __ATOMIC_RELEASE);
}

static void flush_plain(enum Ending ending) {
  size_t length = out.used;
  if (length == 0 && ending == end_none) return;
  char* end = out.buffer + length;
  if (ending != end_none) end = end_line(end, ending);
  out.used = 0;
  size_t with_end = (size_t)(end - out.buffer);
  if (!find_file_again()) return;
  if (!fits(with_end)) {
    record_stop("the limit on file sizes is reached by ", out.path, EFBIG);
    return;
  }
  if (!send_all(out.buffer, with_end, out.offset)) return;
  if (out.compact) {
    was_sent(with_end);
    return;
  }
  out.offset += length;
  if (out.end_in_file && ending == end_none) sys(SYS_ftruncate, out.fd, out.offset);
  out.end_in_file = ending != end_none;
}

// Goes on in a window behind what is in the file; without one, in the plain buffer.
static void move_window(void) {
  use_plain_buffer();
  if (!find_file_again() || !fits(out.window_bytes + 4096)) return;
  char* begin = window_open(out.fd, out.offset, out.window_bytes);
  if (!begin) return;
  if (out.window_bytes < window_bytes_max) out.window_bytes *= 2;
  out.buffer = begin;
  out.room = window_room();
}

static void open_output(void) {
  out.opened = true;
  long fd = create();
  if (fd >= 0 && name_is_compact(out.path)) fd = hand_over(fd);
  if (fd < 0) {
    record_stop("cannot create ", out.path, -fd);
    return;
  }
  out.fd = raise_descriptor((int)fd);
  out.identity = identity_of(out.fd);
  write_header();
  flush_plain(end_none);
  if (!out.compact) {
    move_window();
  } else if (collector_shared()) {
    was_sent(out.offset);
    out.buffer = collector_shared()->bytes;
  }
}

// Cuts off what was reserved and not used, or an end line that something follows.
static void cut(void) {
  window_close();
  if (out.fd >= 0) sys(SYS_ftruncate, out.fd, out.offset);
}

static void flush_window(enum Ending ending) {
  out.offset += out.used;
  if (ending == end_none) {
    move_window();
    if (out.buffer == plain_buffer) cut();
    return;
  }
  use_plain_buffer();
  if (!find_file_again()) return;
  cut();
  flush_plain(ending);
}

static void flush(enum Ending ending) {
  if (!out.opened) open_output();
  if (out.fd < 0) {
    out.used = 0;
  } else if (out.buffer != plain_buffer && !out.compact) {
    flush_window(ending);
  } else {
    flush_plain(ending);
  }
}

// A signal handler that ended the process half way through would find the buffer neither full nor written.
void output_flush(enum Ending ending) {
  static const uint64_t all = ~(uint64_t)0;
  uint64_t before;
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
  flush(ending);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
}

void output_go_on(void) {
  if (out.fd < 0 || out.compact) return;
  flush_plain(end_none);
  cut();
  out.end_in_file = false;
  move_window();
}

char* output_room(size_t bytes) {
  if ((!out.opened && out.configured) || out.used + bytes > out.room) output_flush(end_none);
  return out.buffer + out.used;
}

void output_added(char* end) {
  out.used = (size_t)(end - out.buffer);
  if (out.compact && collector_shared()) __atomic_store_n(&collector_shared()->used, out.used, __ATOMIC_RELEASE);
}

bool output_finish(void) {
  if (!out.compact || out.fd < 0) return true;
  if (same(out.identity, identity_of(out.fd))) collector_finish(out.fd);
  out.fd = -1;
  return false;
}
