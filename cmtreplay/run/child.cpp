#include "cmtreplay/run/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

namespace cmt::replay {
namespace {

/// The name of "NAME=VALUE".
std::string_view variable(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> environment_with(std::vector<std::string> changes, const std::string& preload) {
  std::vector<std::string> environment = std::move(changes);
  if (!preload.empty()) environment.push_back("LD_PRELOAD=" + preload);
  const std::size_t changed = environment.size();
  for (char** entry = environ; *entry; ++entry) {
    const auto same = [entry](const std::string& other) { return variable(other) == variable(*entry); };
    const auto end = environment.begin() + static_cast<std::ptrdiff_t>(changed);
    if (variable(*entry) != "LD_PRELOAD" && std::none_of(environment.begin(), end, same))
      environment.emplace_back(*entry);
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

/// Signals that we hold back ourselves are to reach the child.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// Standard input, output and error of the child.
class Redirections {
 public:
  explicit Redirections(const Launch& launch) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, launch.output_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, launch.error_fd, STDERR_FILENO);
  }
  ~Redirections() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

std::string Ending::text() const {
  if (signal == 0) return "exit status " + std::to_string(status);
  return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

Child::Child(const Launch& launch) {
  std::vector<std::string> command = launch.command;
  std::vector<std::string> environment = environment_with(launch.settings, launch.preload);
  const Attributes attributes;
  const Redirections redirections(launch);
  const int error = posix_spawn(&pid_, command[0].c_str(), redirections.get(), attributes.get(),
                                pointers(command).data(), pointers(environment).data());
  if (error != 0) throw std::system_error(error, std::generic_category(), command[0]);
}

Child::~Child() {
  kill();
  wait();
}

void Child::kill() {
  if (!ended_) ::kill(pid_, SIGKILL);
}

Ending Child::wait() {
  if (ended_) return ending_;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  ended_ = true;
  if (WIFSIGNALED(status)) ending_.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending_.status = WEXITSTATUS(status);
  return ending_;
}

}  // namespace cmt::replay
