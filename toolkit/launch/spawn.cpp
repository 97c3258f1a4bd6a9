// Starts processes by posix_spawn(3), or by fork(2) where they are traced or end with us.

#include "toolkit/launch/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "toolkit/command/interrupts.h"
#include "toolkit/process/proc_file.h"

namespace cmt::launch {
namespace {

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& set) {
  std::map<std::string, std::string> entries;
  std::vector<std::string> result;
  for (const auto& [name, value] : set) entries[name] = value;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (!entries.contains(std::string(text.substr(0, text.find('='))))) result.emplace_back(text);
  }
  for (const auto& [name, value] : entries) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

/// In the child: asks the kernel to end it with the thread that has started it. The thread may have ended already.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
}

/// In the child: what posix_spawn does for the others. Returns where the program cannot be executed.
void execute(const SpawnOptions& options, const std::vector<char*>& words, const std::vector<char*>& environment) {
  if (options.input_fd >= 0) dup2(options.input_fd, STDIN_FILENO);
  if (options.output_fd >= 0) dup2(options.output_fd, STDOUT_FILENO);
  if (options.error_fd >= 0) dup2(options.error_fd, STDERR_FILENO);
  const sigset_t as_usual = command::signals_of_failed_writes();
  for (const int each : {SIGPIPE, SIGXFSZ}) {
    if (sigismember(&as_usual, each) == 1) signal(each, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &options.held_signals, nullptr);
  execvpe(words[0], words.data(), environment.data());
}

/// Waits until a traced process stops, and returns its status as waitpid() does. Returns nothing if the process has
/// ended, and does not reap it.
std::optional<int> wait_for_stop(pid_t pid) {
  siginfo_t what{};
  if (waitid(P_PID, static_cast<id_t>(pid), &what, WSTOPPED | WEXITED | WNOWAIT) != 0) return std::nullopt;
  int status = 0;
  if ((what.si_code != CLD_TRAPPED && what.si_code != CLD_STOPPED) || waitpid(pid, &status, 0) != pid)
    return std::nullopt;
  return status;
}

/// Whether the program of a process is linked with LeakSanitizer, which AddressSanitizer includes. Searches the first
/// 16 MiB of its file for the names of functions and library, which are near the beginning.
bool has_leak_sanitizer(pid_t pid) {
  constexpr std::size_t looked_at = std::size_t{16} << 20;
  const process::Fd file(open(process::path_of(pid, "exe").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0 || status.st_size == 0) return false;
  const std::size_t bytes = std::min(looked_at, static_cast<std::size_t>(status.st_size));
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  bool found = false;
  for (const std::string_view name : {"__asan_init", "__lsan_", "liblsan."})
    found = found || memmem(mapped, bytes, name.data(), name.size()) != nullptr;
  munmap(mapped, bytes);
  return found;
}

/// Returns when a traced process has executed its program, or is about to end without.
void resume_until_executed(pid_t pid) {
  while (const auto status = wait_for_stop(pid)) {
    const int event = *status >> 16;
    resume_traced(pid, *status);
    if (event == PTRACE_EVENT_EXEC || event == PTRACE_EVENT_EXIT) return;
  }
}

enum class Traced { no, yes };

/// Starts a process by fork(2), for what posix_spawn(3) cannot do.
pid_t fork_and_execute(const SpawnOptions& options, Traced is_traced) {
  assert(!options.words.empty());
  std::vector<std::string> words = options.words, environment = environment_with(options.environment);
  const std::vector<char*> arguments = pointers(words), variables = pointers(environment);
  int go[2], failure[2];
  if (pipe2(go, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const process::Fd go_out(go[0]);
  process::Fd go_in(go[1]);
  if (pipe2(failure, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const process::Fd failure_out(failure[0]);
  process::Fd failure_in(failure[1]);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), words[0]);
  if (pid == 0) {
    go_in.close();
    char none;
    while (read(go_out.get(), &none, 1) < 0 && errno == EINTR) continue;  // until the parent has seized us
    if (options.has_own_group || options.ends_with_us) setpgid(0, 0);
    if (options.ends_with_us) end_with(parent);
    execute(options, arguments, variables);
    const int error = errno;
    _exit(write(failure_in.get(), &error, sizeof error) < 0 ? 127 : 126);
  }
  const bool traced = is_traced == Traced::yes && seize(pid);
  go_in.close();
  failure_in.close();
  if (traced) resume_until_executed(pid);
  int error = 0;
  if (read(failure_out.get(), &error, sizeof error) != sizeof error) return pid;
  waitpid(pid, nullptr, 0);
  throw std::system_error(error, std::generic_category(), words[0]);
}

}  // namespace

pid_t spawn(const SpawnOptions& options) {
  assert(!options.words.empty());
  if (options.ends_with_us) return fork_and_execute(options, Traced::no);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.input_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.input_fd, STDIN_FILENO);
  if (options.output_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.output_fd, STDOUT_FILENO);
  if (options.error_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.error_fd, STDERR_FILENO);

  posix_spawnattr_t attributes;
  const sigset_t as_usual = command::signals_of_failed_writes();
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &options.held_signals);
  posix_spawnattr_setsigdefault(&attributes, &as_usual);
  const int group = options.has_own_group ? POSIX_SPAWN_SETPGROUP : 0;  // 0 is the default of the group: its own
  posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));

  pid_t pid = -1;
  std::vector<std::string> words = options.words, environment = environment_with(options.environment);
  const int error =
      posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), words[0]);
  return pid;
}

pid_t spawn_traced(const SpawnOptions& options) { return fork_and_execute(options, Traced::yes); }

bool seize(pid_t pid) { return ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC) == 0; }

bool detach_traced(pid_t pid) {
  if (ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) return false;
  const auto status = wait_for_stop(pid);
  return status && ptrace(PTRACE_DETACH, pid, nullptr, *status >> 16 == 0 ? WSTOPSIG(*status) : 0) == 0;
}

bool resume_traced(pid_t pid, int status) {
  const int signal = WSTOPSIG(status), event = status >> 16;
  if (event == PTRACE_EVENT_EXEC && has_leak_sanitizer(pid)) {
    ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
    return false;
  }
  const bool stays = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
  if (event == PTRACE_EVENT_STOP && stays)
    ptrace(PTRACE_LISTEN, pid, nullptr, nullptr);
  else
    ptrace(PTRACE_CONT, pid, nullptr, event == 0 ? signal : 0);
  return true;
}

Ended ended_of(int status) {
  Ended ended;
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

std::string ending_text(const Ended& ended) {
  if (ended.signal == 0) return "exit status " + std::to_string(ended.status);
  return "signal " + std::to_string(ended.signal) + " (" + strsignal(ended.signal) + ")";
}

std::unique_ptr<ChildProcess> ChildProcess::become(const SpawnOptions& options) {
  std::vector<std::string> words = options.words, environment = environment_with(options.environment);
  const std::vector<char*> arguments = pointers(words), variables = pointers(environment);
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), words[0]);
  if (pid == 0) {
    setpgid(0, 0);
    return std::unique_ptr<ChildProcess>(new ChildProcess(parent));
  }
  execute(options, arguments, variables);
  throw std::system_error(errno, std::generic_category(), words[0]);
}

ChildProcess::~ChildProcess() {
  kill();
  wait();
}

void ChildProcess::kill() {
  assert(pid_ > 0);  // 0 and -1 would kill this process, too
  if (!is_reaped_) ::kill(has_own_group_ ? -pid_ : pid_, SIGKILL);
}

bool ChildProcess::has_ended() const {
  if (is_parent_) return getppid() != pid_;
  siginfo_t ending{};
  return is_reaped_ ||
         (waitid(P_PID, static_cast<id_t>(pid_), &ending, WEXITED | WNOHANG | WNOWAIT) == 0 && ending.si_pid == pid_);
}

Ended ChildProcess::wait() {
  if (is_reaped_) return ended_;
  siginfo_t ending{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &ending, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
  if (has_own_group_) kill();  // while nobody else can have its number
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  is_reaped_ = true;
  return ended_ = ended_of(status);
}

bool ChildProcess::ends_within(unsigned seconds) {
  const process::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  for (unsigned left = 2 * seconds; process.get() >= 0 && ended.revents == 0; --left) {
    if (left == 0) return false;
    poll(&ended, 1, 500);
  }
  wait();
  return true;
}

}  // namespace cmt::launch
