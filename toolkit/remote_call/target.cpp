// Checks that a process can be attached to, and finds the functions of its libc that an attach calls.
#include "toolkit/remote_call/target.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <set>
#include <system_error>

#include "toolkit/process/stat.h"

namespace cmt::remote_call {
namespace {

/// Throws Refused.
process::Fd open_process(int pid) {
  process::Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.get() >= 0) return fd;
  const std::string who = std::to_string(pid);
  if (errno == ESRCH) throw Refused("there is no process " + who);
  if (errno == EINVAL) throw Refused(who + " is a thread, not a process");
  throw Refused("process " + who + " cannot be attached to: pidfd_open: " + error_text(errno));
}

RemoteMemory open_memory(int pid) {
  try {
    return RemoteMemory(pid);
  } catch (const std::system_error& error) {
    throw Refused("process " + called(pid) + " cannot be attached to: " + why_not_traceable(pid, error.code().value()));
  }
}

EntryPoints read_entry_points(int pid) {
  const std::string vector = process::read_file(process::path_of(pid, "auxv"));
  EntryPoints entries;
  Elf64_auxv_t entry;
  for (std::size_t at = 0; at + sizeof entry <= vector.size(); at += sizeof entry) {
    std::memcpy(&entry, vector.data() + at, sizeof entry);
    if (entry.a_type == AT_BASE) entries.loader = entry.a_un.a_val;
    if (entry.a_type == AT_ENTRY) entries.program = entry.a_un.a_val;
  }
  return entries;
}

bool is_32_bit_program(int pid) {
  std::ifstream file(process::path_of(pid, "exe"), std::ios::binary);
  char begin[EI_NIDENT] = {};
  return file.read(begin, sizeof begin) && begin[EI_CLASS] == ELFCLASS32;
}

int number_in(const std::string& path, int otherwise) {
  int number = otherwise;
  std::ifstream(path) >> number;
  return number;
}

/// Finds bytes in the code of a module.
std::uint64_t find_code(const Target& target, const Module& module, std::string_view code) {
  for (const process::Mapping& mapping : target.maps()) {
    if (!module.contains(mapping.begin) || mapping.permissions[2] != 'x') continue;
    std::string bytes(mapping.end - mapping.begin, '\0');
    if (!target.memory().read(mapping.begin, bytes.data(), bytes.size())) continue;
    if (const std::size_t at = bytes.find(code); at != bytes.npos) return mapping.begin + at;
  }
  return 0;
}

}  // namespace

std::string error_text(int error) { return std::generic_category().message(error); }

std::string called(int pid) {
  try {
    return std::to_string(pid) + " (" + process::read_stat(pid).name + ")";
  } catch (const std::exception&) {
    return std::to_string(pid);
  }
}

std::string why_not_traceable(int tid, int error) {
  int tracer = 0;
  try {
    tracer = process::read_status(tid).tracer;
  } catch (const std::system_error&) {
  }
  if (tracer != 0) return called(tracer) + " traces it already";
  const int yama = number_in("/proc/sys/kernel/yama/ptrace_scope", 0);
  if (error != EPERM && error != EACCES) return error_text(error);
  if (yama == 3) return "kernel.yama.ptrace_scope is 3: nobody may trace here until the machine is started anew";
  if (yama == 2) return "kernel.yama.ptrace_scope is 2: CAP_SYS_PTRACE is needed (run this as root)";
  if (yama == 1 && geteuid() != 0)
    return "kernel.yama.ptrace_scope is 1: run this as root, or set it to 0 (sysctl kernel.yama.ptrace_scope=0)";
  return "it is another user's, or has more rights than this process: CAP_SYS_PTRACE is needed (run this as root)";
}

Target::Target(int pid)
    : pid_(pid), called_(remote_call::called(pid)), descriptor_(open_process(pid)), memory_(open_memory(pid)) {
  check_program();
  try {
    entries_ = read_entry_points(pid);
    read_again();
  } catch (const std::system_error& error) {
    throw Refused("process " + called_ + " cannot be attached to: " + why_not_traceable(pid, error.code().value()));
  }
}

void Target::check_program() const {
  const std::string who = "process " + called_;
  std::error_code error;
  if (process::read_stat(pid_).kernel_thread) throw Refused(who + " is a thread of the kernel");
  if (is_32_bit_program(pid_)) throw Refused(who + " is a 32-bit program: libcmttrace.so is for 64 bits");
}

void Target::read_again() {
  read_maps_again();
  modules_ = find_modules(memory_, maps_);
  zones_ = std::make_unique<const Zones>(memory_, modules_, entries_);
  find_functions();
}

void Target::find_functions() {
  functions_ = {};
  const Module* libc = nullptr;
  for (const Module& module : modules_) {
    if (module.file_name().starts_with("ld-musl") || module.file_name().starts_with("libc.musl"))
      throw Refused("process " + called_ + " uses musl, and libcmttrace.so needs glibc");
    if (is_libc(module)) libc = &module;
    if (functions_.dlopen == 0 && (is_libc(module) || module.file_name().starts_with("libdl"))) {
      if (const auto found = find_function(memory_, module, "dlopen")) functions_.dlopen = found->address;
    }
  }
  if (entries_.loader == 0) {
    throw Refused("process " + called_ +
                  " is linked statically: nothing can be loaded into it; link it dynamically to record it");
  }
  if (libc == nullptr) throw Refused("process " + called_ + " has not loaded a libc.so of glibc");
  const auto own_dlopen = find_function(memory_, *libc, "__libc_dlopen_mode");
  if (functions_.dlopen == 0 && own_dlopen) {
    functions_.dlopen = own_dlopen->address;
    functions_.dlopen_flags = 0x80000000;
  }
  if (const auto found = find_function(memory_, *libc, "syscall")) functions_.system_call = found->address;
  constexpr std::string_view trampoline("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
  functions_.return_trampoline = find_code(*this, *libc, trampoline);
  if (functions_.dlopen == 0 || functions_.system_call == 0 || functions_.return_trampoline == 0)
    throw Refused("process " + called_ + " has a libc.so that is not known here: no dlopen was found in it");
}

bool Target::has_ended() const {
  pollfd ended{.fd = descriptor(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) > 0;
}

const Module* Target::stub() const {
  const auto found = std::find_if(modules_.begin(), modules_.end(), is_attached_tracer);
  return found == modules_.end() ? nullptr : &*found;
}

process::Fd Target::take_descriptor(int fd) const {
  process::Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, descriptor(), fd, 0)));
  if (copy.get() < 0) throw std::system_error(errno, std::generic_category(), "pidfd_getfd");
  return copy;
}

TargetLock::TargetLock(const Target& target)
    : memory_(::open(process::path_of(target.pid(), "mem").c_str(), O_RDONLY | O_CLOEXEC)) {
  constexpr std::chrono::seconds other_within(2);
  constexpr int step_us = 1000;
  const auto deadline = std::chrono::steady_clock::now() + other_within;
  while (memory_.get() >= 0 && flock(memory_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return;  // it cannot be locked here: as without
    if (std::chrono::steady_clock::now() >= deadline)
      throw Refused("process " + target.called() + ": another cmttrace attaches to it or detaches from it; try again");
    usleep(step_us);
  }
}

void check_attachable(const Target& target) {
  const std::string who = "process " + target.called();
  if (target.pid() == getpid()) throw Refused(who + " is this cmttrace, which cannot attach to itself");
  const char state = process::read_stat(target.pid()).state;
  if (state == 'T') throw Refused(who + " is stopped by a signal: let it go on first (kill -CONT)");
  if (state == 'Z' || state == 'X') throw Refused(who + " has ended");
  const int tracer = process::read_status(target.pid()).tracer;
  if (tracer != 0) throw Refused(who + " cannot be attached to: " + called(tracer) + " traces it already");
  for (const Module& module : target.modules()) {
    if (is_tracer(module) && !is_attached_tracer(module))
      throw Refused(who + " is recorded already: it was started with " + module.name);
  }
  struct statfs proc {};
  const std::string folder = process::path_of(target.pid(), "root/proc");
  if (statfs(folder.c_str(), &proc) != 0 || proc.f_type != PROC_SUPER_MAGIC)
    throw Refused(who + " sees no /proc, through which libcmttrace.so is loaded: mount it there");
}

}  // namespace cmt::remote_call
