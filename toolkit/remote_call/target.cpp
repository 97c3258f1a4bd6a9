// Checks that a process can be made to call functions, and finds those of its libc that every attach needs.
#include "toolkit/remote_call/target.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>

#include "toolkit/process/proc_mount.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/stopping/traceable.h"

namespace cmt::remote_call {
namespace {

/// Throws Refused.
process::Fd open_process(int pid) {
  process::Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.get() >= 0) {
    if (!process::is_proc_mounted()) throw Refused(process::proc_is_missing);
    return fd;
  }
  const std::string who = std::to_string(pid);
  if (errno == ESRCH) throw Refused("there is no process " + who);
  if (errno == EINVAL) throw Refused(who + " is a thread, not a process");
  throw Refused("process " + who + " cannot be attached to: pidfd_open: " + error_text(errno));
}

RemoteMemory open_memory(int pid) {
  try {
    return RemoteMemory(pid);
  } catch (const std::system_error& error) {
    throw Refused("process " + process::called(pid) +
                  " cannot be attached to: " + process::why_not_traceable(pid, error.code().value()));
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

Target::Target(int pid)
    : pid_(pid), called_(process::called(pid)), descriptor_(open_process(pid)), memory_(open_memory(pid)) {
  check_program();
  try {
    entries_ = read_entry_points(pid);
    read_again();
  } catch (const std::system_error& error) {
    throw Refused("process " + called_ +
                  " cannot be attached to: " + process::why_not_traceable(pid, error.code().value()));
  }
}

void Target::check_program() const {
  const std::string who = "process " + called_;
  std::error_code error;
  if (process::read_stat(pid_).kernel_thread) throw Refused(who + " is a thread of the kernel");
  if (is_32_bit_program(pid_)) throw Refused(who + " is a 32-bit program: only 64-bit programs are supported");
}

void Target::read_again() {
  read_maps_again();
  modules_ = find_modules(memory_, maps_);
  zones_ = std::make_unique<const Zones>(memory_, modules_, entries_);
  find_functions();
}

void Target::find_functions() {
  functions_ = {};
  for (const Module& module : modules_) {
    if (functions_.dlopen != 0 || !(is_libc(module) || module.file_name().starts_with("libdl"))) continue;
    if (const auto found = find_function(memory_, module, "dlopen")) functions_.dlopen = found->address;
  }
  const Module* const libc = this->libc();
  if (libc == nullptr) return;
  const auto own_dlopen = find_function(memory_, *libc, "__libc_dlopen_mode");
  if (functions_.dlopen == 0 && own_dlopen) {
    functions_.dlopen = own_dlopen->address;
    functions_.dlopen_flags = 0x80000000;
  }
  if (const auto found = find_function(memory_, *libc, "syscall")) functions_.system_call = found->address;
  constexpr std::string_view trampoline("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
  functions_.return_trampoline = find_code(*this, *libc, trampoline);
}

CLibrary Target::c_library() const {
  const bool is_musl = std::any_of(modules_.begin(), modules_.end(), [](const Module& module) {
    const std::string_view name = module.file_name();
    return name == "libc.so" || name.starts_with("ld-musl") || name.starts_with("libc.musl");
  });
  if (is_musl) return CLibrary::musl;
  if (entries_.loader == 0) return CLibrary::linked_statically;
  return libc() != nullptr ? CLibrary::glibc : CLibrary::unknown;
}

const Module* Target::libc() const {
  const auto found = std::find_if(modules_.rbegin(), modules_.rend(), is_libc);
  return found == modules_.rend() ? nullptr : &*found;
}

bool Target::has_ended() const {
  pollfd ended{.fd = descriptor(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) > 0;
}

bool Target::has_begun_another_program() const {
  try {
    const EntryPoints now = read_entry_points(pid_);
    return (now != entries_ || !memory_.read<char>(entries_.program)) && now.program != 0 && !has_ended();
  } catch (const std::system_error&) {
    return false;
  }
}

const Module* Target::stub() const {
  const auto is_stub = [](const Module& module) { return module.name == process::attached_memory; };
  const auto found = std::find_if(modules_.begin(), modules_.end(), is_stub);
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
      throw Refused("process " + target.called() + ": another cmttrace or cmtwatch calls functions in it; try again");
    usleep(step_us);
  }
}

void check_callable(const Target& target) {
  const std::string who = "process " + target.called();
  const char state = process::read_stat(target.pid()).state;
  if (state == 'T') throw Refused(who + " is stopped by a signal: let it go on first (kill -CONT)");
  if (state == 'Z' || state == 'X') throw Refused(who + " has ended");
  const int tracer = process::read_status(target.pid()).tracer;
  if (tracer != 0) throw Refused(who + " cannot be attached to: " + process::called(tracer) + " traces it already");
}

}  // namespace cmt::remote_call
