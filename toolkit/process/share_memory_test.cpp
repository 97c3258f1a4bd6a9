#include "toolkit/process/share_memory.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

using namespace cmt::process;

namespace {

int wait_for_signal(void*) {
  pause();
  _exit(0);
}

/// A child that does nothing, in our memory or in its own.
class Idle {
 public:
  explicit Idle(int flags)
      : stack_(64 * 1024), pid_(clone(wait_for_signal, &*stack_.end(), flags | SIGCHLD, nullptr)) {}
  ~Idle() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

 private:
  std::vector<char> stack_;
  int pid_;
};

}  // namespace

TEST_CASE("shared memory: a child that runs in ours is told from one with a copy") {
  if (!share_memory(getpid(), getpid())) {
    MESSAGE("skipped: this kernel does not let us compare processes");
    return;
  }
  const Idle shares(CLONE_VM);
  const Idle copies(0);
  CHECK(share_memory(shares.pid(), getpid()));
  CHECK_FALSE(share_memory(copies.pid(), getpid()));
  CHECK_FALSE(share_memory(2147483646, getpid()));
}
