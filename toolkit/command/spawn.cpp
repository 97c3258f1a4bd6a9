#include "toolkit/command/spawn.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <system_error>

#include "toolkit/command/interrupts.h"

namespace cmt::command {
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

}  // namespace

pid_t spawn(const SpawnOptions& options) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.input_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.input_fd, STDIN_FILENO);
  if (options.output_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.output_fd, STDOUT_FILENO);
  if (options.error_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.error_fd, STDERR_FILENO);

  posix_spawnattr_t attributes;
  const sigset_t as_usual = signal_set({SIGPIPE, SIGXFSZ});
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &options.held_signals);
  posix_spawnattr_setsigdefault(&attributes, &as_usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t pid = -1;
  std::vector<std::string> words = options.words, environment = environment_with(options.environment);
  const int error =
      posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), words[0]);
  return pid;
}

Ended ended_of(int status, const rusage& usage) {
  Ended ended;
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.resident_bytes_peak = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return ended;
}

std::string ending_text(const Ended& ended) {
  if (ended.signal == 0) return "exit status " + std::to_string(ended.status);
  return "signal " + std::to_string(ended.signal) + " (" + strsignal(ended.signal) + ")";
}

ChildProcess::~ChildProcess() {
  kill();
  wait();
}

void ChildProcess::kill() {
  if (!has_ended_) ::kill(pid_, SIGKILL);
}

Ended ChildProcess::wait() {
  if (has_ended_) return ended_;
  int status = 0;
  rusage usage{};
  while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) continue;
  has_ended_ = true;
  return ended_ = ended_of(status, usage);
}

}  // namespace cmt::command
