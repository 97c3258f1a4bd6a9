// The requests of ptrace(2) that stop a thread and let it go on. interrupted_calls.cpp mends its system call.
#include "toolkit/process/stopping/thread_stop.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <optional>

namespace cmt::process {
namespace {

constexpr int system_call_status = SIGTRAP | 0x80;  // with PTRACE_O_TRACESYSGOOD

void* number_as_pointer(unsigned long number) { return reinterpret_cast<void*>(number); }

ThreadStop stop_of(int status) {
  const int event = status >> 8, signal = status & 0xff;
  if (event == PTRACE_EVENT_STOP) return {signal == SIGTRAP ? ThreadStop::Kind::asked : ThreadStop::Kind::group, 0};
  if (event != 0) return {ThreadStop::Kind::event, 0};
  if (status == system_call_status) return {ThreadStop::Kind::system_call, 0};
  return {ThreadStop::Kind::signal, status};
}

/// Returns the result of waitid() for a traced thread, without reaping it. Returns nothing if it is not traced here.
/// waitid() reports stops of a traced thread even if only ends are asked for. So both are asked for.
std::optional<siginfo_t> look_without_reaping(int tid) {
  constexpr int options = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
  siginfo_t what{};
  if (waitid(P_PID, static_cast<id_t>(tid), &what, options) != 0) return std::nullopt;
  return what;
}

bool is_stop(const siginfo_t& what) { return what.si_code == CLD_TRAPPED || what.si_code == CLD_STOPPED; }

}  // namespace

int ask_to_stop(int tid, unsigned long options) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, number_as_pointer(options)) != 0) return errno;
  ask_again(tid);
  return 0;
}

void ask_again(int tid) { ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr); }

ThreadStop look_at(int pid, int tid, InterruptedCalls& calls) {
  const auto what = look_without_reaping(tid);
  if (!what) return {ThreadStop::Kind::gone, 0};
  if (what->si_pid == 0) return {};
  if (!is_stop(*what)) return {ThreadStop::Kind::ended, 0};
  const ThreadStop stop = stop_of(what->si_status);
  // At a signal too: signals that a program ignores wake its traced threads, and would end their calls.
  if (stop.kind != ThreadStop::Kind::system_call) calls.begin_anew(pid, tid);
  return stop;
}

void reap_if_ended(int tid) {
  const auto what = look_without_reaping(tid);
  if (!what || what->si_pid == 0 || is_stop(*what)) return;
  siginfo_t reaped{};
  waitid(P_PID, static_cast<id_t>(tid), &reaped, WEXITED | WNOHANG | __WALL);
}

bool let_go_on(int tid, const ThreadStop& stop, int request) {
  if (stop.kind == ThreadStop::Kind::group) request = PTRACE_LISTEN;
  void* const signal = number_as_pointer(static_cast<unsigned long>(stop.signal));
  return ptrace(static_cast<__ptrace_request>(request), tid, nullptr, signal) == 0;
}

void let_go(int tid, const ThreadStop& stop) {
  ptrace(PTRACE_DETACH, tid, nullptr, number_as_pointer(static_cast<unsigned long>(stop.signal)));
}

}  // namespace cmt::process
