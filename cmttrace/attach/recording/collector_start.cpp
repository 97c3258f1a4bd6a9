// Starts cmttrace-collector with the descriptors and the environment that it expects.
#include "cmttrace/attach/recording/collector_start.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "toolkit/process/proc_file.h"

namespace cmt::attach {
namespace {

/// Our environment with some variables set, in the form for execve(2).
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& settings) {
    for (const auto& [name, value] : settings) texts_.push_back(name + "=" + value);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (std::strncmp(*variable, "CMTTRACE_", 9) != 0 && std::strncmp(*variable, "LD_PRELOAD=", 11) != 0)
        texts_.emplace_back(*variable);
    }
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char* const* pointers() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// A file in memory with a control block, which nobody else has.
process::Fd file_of(const Control& description) {
  process::Fd file(memfd_create("cmttrace", MFD_CLOEXEC));
  if (file.get() < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  process::write_all(file.get(), {reinterpret_cast<const char*>(&description), sizeof description}, "memory");
  return file;
}

/// Above all numbers that descriptors are to get, so that none overwrites another.
constexpr int above_all = 64;

}  // namespace

pid_t start_collector(const std::string& program, int rings, int process, const std::vector<int>& outputs,
                      const Control& description, const std::vector<std::pair<std::string, std::string>>& settings) {
  const process::Fd described = file_of(description);
  std::vector<int> inherited{rings, process};
  inherited.insert(inherited.end(), outputs.begin(), outputs.end());
  inherited.push_back(described.get());
  std::vector<process::Fd> high;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd = 0; fd < collector_memory; ++fd) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  for (std::size_t i = 0; i < inherited.size(); ++i) {
    high.emplace_back(fcntl(inherited[i], F_DUPFD_CLOEXEC, above_all));
    posix_spawn_file_actions_adddup2(&actions, high.back().get(), collector_memory + static_cast<int>(i));
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, collector_memory + static_cast<int>(inherited.size()));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string path = program, word = "--attach", number = std::to_string(collector_output + outputs.size());
  char* const arguments[] = {path.data(), word.data(), number.data(), nullptr};
  Environment environment(settings);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments, environment.pointers());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), program);
  return pid;
}

}  // namespace cmt::attach
