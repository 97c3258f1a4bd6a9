// Filters are executed as the kernel does it, and the calls of an attach that they end or refuse are named.
#include "toolkit/remote_call/system_filter.h"

#include <doctest/doctest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

using namespace cmt::remote_call;

namespace {

constexpr auto number_at = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));

sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter skip_unless_equal(std::uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }
sock_filter answer(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

/// A filter that gives one answer for one call, and allows all others.
std::vector<sock_filter> filter_of(int call, std::uint32_t action) {
  return {load(number_at), skip_unless_equal(static_cast<std::uint32_t>(call)), answer(action),
          answer(SECCOMP_RET_ALLOW)};
}

FilterVerdict verdict_of(const std::vector<std::vector<sock_filter>>& programs) {
  return judge_filters({.programs = programs});
}

}  // namespace

TEST_CASE("system filter: one that ends the program for a call of ours is named, of several the strongest counts") {
  CHECK(verdict_of({}).killed_by.empty());
  CHECK(verdict_of({filter_of(SYS_ptrace, SECCOMP_RET_KILL_PROCESS)}).killed_by.empty());
  CHECK(verdict_of({filter_of(SYS_mprotect, SECCOMP_RET_KILL_THREAD)}).killed_by == "mprotect");
  CHECK(verdict_of({filter_of(SYS_openat, SECCOMP_RET_TRAP)}).killed_by == "openat");
  CHECK(verdict_of({filter_of(SYS_openat, SECCOMP_RET_ALLOW), filter_of(SYS_close, SECCOMP_RET_KILL_PROCESS)})
            .killed_by == "close");
  CHECK(verdict_of({filter_of(SYS_close, SECCOMP_RET_LOG)}).killed_by.empty());
}

TEST_CASE("system filter: a call that it refuses matters if nothing can be done without it") {
  CHECK(verdict_of({filter_of(SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM)}).refused == "memfd_create");
  CHECK(verdict_of({filter_of(SYS_madvise, SECCOMP_RET_ERRNO | EPERM)}).refused.empty());
  CHECK(verdict_of({filter_of(SYS_madvise, SECCOMP_RET_ERRNO | EPERM)}).killed_by.empty());
}

TEST_CASE("system filter: a thread that only is recorded makes fewer calls than the one that loads the library") {
  const SystemFilters of_loading{.programs = {filter_of(SYS_openat, SECCOMP_RET_KILL_THREAD)}};
  CHECK(judge_filters(of_loading, {CallUse::record}).killed_by.empty());
  CHECK(judge_filters(of_loading, {CallUse::load, CallUse::record}).killed_by == "openat");
  const SystemFilters of_futex{.programs = {filter_of(SYS_futex, SECCOMP_RET_KILL_THREAD)}};
  CHECK(judge_filters(of_futex, {CallUse::record}).killed_by == "futex");
  const SystemFilters of_pages{.programs = {filter_of(SYS_mincore, SECCOMP_RET_TRAP)}};
  CHECK(judge_filters(of_pages, {CallUse::record}).killed_by.empty());
  CHECK(judge_filters(of_pages, {CallUse::record, CallUse::touch}).killed_by == "mincore");
}

TEST_CASE("system filter: a function of an allocator needs all of its calls") {
  const SystemFilters kills{.programs = {filter_of(SYS_madvise, SECCOMP_RET_KILL_PROCESS)}};
  CHECK(judge_filters(kills, {CallUse::allocator}).killed_by == "madvise");
  const SystemFilters refuses{.programs = {filter_of(SYS_brk, SECCOMP_RET_ERRNO | 1)}};
  CHECK(judge_filters(refuses, {CallUse::allocator}).refused == "brk");
  const SystemFilters of_loading{.programs = {filter_of(SYS_openat, SECCOMP_RET_KILL_PROCESS)}};
  CHECK(judge_filters(of_loading, {CallUse::allocator}).killed_by.empty());
}

TEST_CASE("system filter: memory, arithmetic, jumps and arguments are as in the kernel") {
  const FilteredCall call{"mprotect", SYS_mprotect, {0x1234567800000000, 4096, 5}};
  const auto third_argument = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 16);
  const std::vector<sock_filter> program{
      load(third_argument),                    // 5
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4),  // 80
      BPF_STMT(BPF_ST, 3),
      BPF_STMT(BPF_LDX | BPF_IMM, 7),
      BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),  // 87
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_MEM, 3),                   // 80
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 1, 0),    // not above 87
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 16, 1, 0),  // has bit 4
      answer(SECCOMP_RET_KILL_PROCESS),
      load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 4)),
      skip_unless_equal(0x12345678),
      BPF_STMT(BPF_JMP | BPF_JA, 1),
      answer(SECCOMP_RET_KILL_PROCESS),
      load(static_cast<std::uint32_t>(offsetof(seccomp_data, arch))),
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  CHECK(run_filter(program, call, 0) == AUDIT_ARCH_X86_64);
  CHECK_FALSE(run_filter(std::vector<sock_filter>{BPF_STMT(BPF_LDX | BPF_IMM, 0),
                                                  BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), answer(SECCOMP_RET_ALLOW)},
                         call, 0));
}

TEST_CASE("system filter: that of a process is read") {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<sock_filter> filter = filter_of(SYS_mprotect, SECCOMP_RET_KILL_PROCESS);
    sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, nullptr, WUNTRACED);
  const bool may = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0;
  ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr);
  if (may) waitpid(child, nullptr, __WALL);
  const SystemFilters filters = may ? read_filters(child) : SystemFilters{};
  kill(child, SIGKILL);
  waitpid(child, nullptr, __WALL);
  if (!may || filters.error != 0) {
    MESSAGE("skipped: filters cannot be read here");
    return;
  }
  CHECK(filters.programs.size() >= 1);
  CHECK(judge_filters(filters).killed_by == "mprotect");
}
