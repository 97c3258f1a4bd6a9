// Decides from a file's first bytes and rights whether the dynamic loader will load us into the program (ld.so(8)).
#include "preload/program/launch/execs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "preload/program/kernel.h"
#include "preload/program/launch/restart.h"
#include "preload/program/launch/status.h"
#include "preload/program/settings.h"
#include "preload/program/tracing.h"
#include "preload/text.h"

enum { not_readable = 0x7fffffff };  // in place of a descriptor
enum { piece_of_file = 512, path_bytes = 1024, scripts_max = 5, segments_max = 64, mount_without_setuid = 2 };

#if defined __x86_64__
enum { own_machine = EM_X86_64 };
#else
enum { own_machine = EM_AARCH64 };
#endif

// The part of a file at hand: a program's headers are in the first one.
struct Piece {
  long file;
  uint64_t offset;
  long bytes;
  char data[piece_of_file];
};

static const void* read_at(struct Piece* piece, uint64_t offset, size_t size) {
  const bool is_here = offset >= piece->offset && offset + size <= piece->offset + (uint64_t)piece->bytes;
  if (size > piece_of_file || offset + size < offset) return NULL;
  if (!is_here) {
    piece->bytes = sys(SYS_pread64, piece->file, piece->data, sizeof piece->data, offset);
    piece->offset = offset;
    if (piece->bytes < (long)size) piece->bytes = 0;
  }
  return piece->bytes ? piece->data + (offset - piece->offset) : NULL;
}

// The loader itself may be called with a program: it loads us.
static bool is_loader(const char* path) {
  const char* const name = file_name_of(path);
  return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl", 7) == 0;
}

// NULL: none is known, or the kernel will refuse the file.
static const char* obstacle_in_headers(struct Piece* piece, const char* path) {
  Elf64_Ehdr head;
  const void* begin = read_at(piece, 0, sizeof head);
  if (!begin) return NULL;
  memcpy(&head, begin, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  if (head.e_ident[EI_CLASS] != ELFCLASS64) return "bits";
  if (head.e_machine != own_machine) return "processor";
  for (unsigned i = 0; i < head.e_phnum && i < segments_max; i++) {
    const Elf64_Phdr* segment = read_at(piece, head.e_phoff + i * sizeof *segment, sizeof *segment);
    if (!segment) return NULL;
    uint32_t type;
    memcpy(&type, &segment->p_type, sizeof type);
    if (type == PT_INTERP) return NULL;
  }
  return is_loader(path) ? NULL : "static";
}

// As the kernel decides it, and passes it to the loader in AT_SECURE. The marks of a file have no effect where its
// mount or the process forbids it.
static bool gets_other_rights(long file, const struct stat* status) {
  const uid_t user = (uid_t)sys(SYS_getuid);
  const gid_t group = (gid_t)sys(SYS_getgid);
  uid_t next_user = (uid_t)sys(SYS_geteuid);
  gid_t next_group = (gid_t)sys(SYS_getegid);
  struct statfs mount = {0};
  const bool has_mark = (status->st_mode & (S_ISUID | S_ISGID)) != 0;
  const bool has_capabilities = user != 0 && file >= 0 && sys(SYS_fgetxattr, file, "security.capability", NULL, 0) > 0;
  if (has_mark || has_capabilities) {
    sys(SYS_fstatfs, file, &mount);
    if ((mount.f_flags & mount_without_setuid) || sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
      return next_user != user || next_group != group;
  }
  if (status->st_mode & S_ISUID) next_user = status->st_uid;
  if ((status->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)) next_group = status->st_gid;
  return next_user != user || next_group != group || has_capabilities;
}

// Copies the interpreter's path out of "#! /usr/bin/perl -w".
static bool read_interpreter(struct Piece* piece, char path[path_bytes]) {
  const char* begin = read_at(piece, 0, 3);
  if (!begin || begin[0] != '#' || begin[1] != '!') return false;
  const char *at = begin + 2, *end = begin + piece->bytes;
  while (at < end && (*at == ' ' || *at == '\t')) at++;
  size_t length = 0;
  while (at < end && *at && *at != ' ' && *at != '\t' && *at != '\n' && length < path_bytes - 1) path[length++] = *at++;
  path[length] = 0;
  return length != 0;
}

static long open_regular(long folder, const char* path, struct stat* status) {
  const long failed = sys(SYS_newfstatat, folder, path, status, 0);
  if (failed) return failed;
  if (!S_ISREG(status->st_mode) || (status->st_mode & 0111) == 0) return -EINVAL;
  const long file = sys(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  return file == -EACCES ? not_readable : file;
}

// Looks at a file and closes it. Where it is a script, the interpreter is what counts.
static const char* obstacle_of(long file, struct stat* status, const char* path) {
  char interpreter[path_bytes];
  for (int scripts = 0; file >= 0 && scripts < scripts_max; scripts++) {
    struct Piece piece = {.file = file};
    const bool is_script = file != not_readable && read_interpreter(&piece, interpreter);
    const char* obstacle = is_script || file == not_readable ? NULL : obstacle_in_headers(&piece, path);
    if (!is_script && !obstacle && gets_other_rights(file, status)) obstacle = "rights";
    if (file != not_readable) sys(SYS_close, file);
    if (!is_script) return obstacle;
    path = interpreter;
    file = open_regular(AT_FDCWD, path, status);
  }
  return NULL;
}

// The entry of LD_PRELOAD that names us, and its length; NULL: there is none.
static const char* find_us(char* const* environment, size_t* length) {
  const char* const own = own_file_name();
  const size_t own_length = strlen(own);
  for (; environment && *environment; environment++) {
    if (strncmp(*environment, "LD_PRELOAD=", 11) != 0) continue;
    for (const char* entry = *environment + 11; *entry; entry += *length + strspn(entry + *length, ": ")) {
      *length = strcspn(entry, ": ");
      if (*length < own_length) continue;
      const char* const name = entry + *length - own_length;
      if (memcmp(name, own, own_length) == 0 && (name == entry || name[-1] == '/')) return entry;
    }
  }
  return NULL;
}

// The program may have another root folder, where the loader does not find us.
static const char* obstacle_in(char* const* environment) {
  size_t length;
  const char* const path = find_us(environment, &length);
  char file[path_bytes];
  if (!path) return "environment";
  if (*path != '/' || length >= sizeof file) return NULL;
  memcpy(file, path, length);
  file[length] = 0;
  return sys_access(file, R_OK) == -ENOENT ? "library" : NULL;
}

// The first file in PATH that can be executed, as execvp finds it.
static long open_in_path(const char* name, struct stat* status) {
  char path[path_bytes];
  const char* folders = getenv("PATH");
  const size_t name_length = strlen(name);
  if (!folders) folders = "/bin:/usr/bin";
  for (;;) {
    const size_t length = strcspn(folders, ":");
    if (length + name_length + 2 <= path_bytes) {
      memcpy(path, folders, length);
      path[length] = '/';
      memcpy(path + length + (length != 0), name, name_length + 1);
      const long file = sys_access(path, X_OK) == 0 ? open_regular(AT_FDCWD, path, status) : -EACCES;
      if (file >= 0) return file;
    }
    folders += length;
    if (*folders++ == 0) return -ENOENT;
  }
}

// A descriptor may have been opened without the right to read.
static void path_of_descriptor(char path[32], int descriptor) {
  char* end = put_decimal(stpcpy(path, "/proc/self/fd/"), (uint64_t)descriptor);
  *end = 0;
}

static long open_program(const struct Execution* execution, struct stat* status) {
  char path[32];
  if (execution->is_searched && !strchr(execution->path, '/')) return open_in_path(execution->path, status);
  if (*execution->path) return open_regular(execution->folder, execution->path, status);
  path_of_descriptor(path, execution->folder);
  return open_regular(AT_FDCWD, path, status);
}

// "pid=7 not_recorded=static path=/bin/app".
static bool append(const char* field, const char* value, const char* path) {
  char begin[48];
  const char* const end = put_decimal(stpcpy(begin, "pid="), (uint64_t)sys(SYS_getpid));
  const struct iovec pieces[] = {status_piece(begin, (size_t)(end - begin)), status_piece(field, strlen(field)),
                                 status_piece(value, strlen(value)),         status_piece(" path=", 6),
                                 status_piece(path, strcspn(path, "\n")),    status_piece("\n", 1)};
  return status_append(pieces, sizeof pieces / sizeof *pieces);
}

// In another root folder the launcher's file has no name.
static enum Announcement count_unrecorded(uint32_t more) {
  struct UnrecordedCounts* const counts = tracing.parents_counts ? tracing.parents_counts
                                          : tracing.control      ? &tracing.control->unrecorded
                                                                 : NULL;
  if (!counts) return announced_nowhere;
  __atomic_fetch_add(&counts->programs, more, __ATOMIC_RELAXED);
  return announced_by_count;
}

enum Announcement execs_announce(const struct Execution* execution) {
  struct stat status;
  if (sandbox_entered || !execution->path || !children_are_reported()) return announced_nowhere;
  const long file = open_program(execution, &status);
  const char* obstacle = obstacle_of(file, &status, execution->path);
  if (!obstacle && file >= 0) obstacle = obstacle_in(execution->environment);
  if (!obstacle) return announced_nowhere;
  char link[32], target[path_bytes] = {0};
  if (!*execution->path) {
    path_of_descriptor(link, execution->folder);
    sys(SYS_readlinkat, AT_FDCWD, link, target, sizeof target - 1);
  }
  const char* const path = *execution->path ? execution->path : target;
  return append(" not_recorded=", obstacle, path) ? announced_in_status : count_unrecorded(1);
}

void execs_take_back(enum Announcement where) {
  if (where == announced_in_status) append(" exec_failed=", "1", "");
  if (where == announced_by_count) count_unrecorded((uint32_t)-1);
}
