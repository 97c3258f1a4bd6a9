// Checks children, threads and shared memory of processes that the test starts.

#include "toolkit/process/stat.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

using namespace cmt::process;

namespace {

/// A made-up /proc.
class Root {
 public:
  Root() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const std::string& path() const { return path_; }

  void add(int pid, int parent) const {
    const std::string text = std::to_string(pid) + " (x) S " + std::to_string(parent);
    write(pid, "stat", text + " 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n");
  }
  void list(int pid, int task, const std::string& children) const {
    write(pid, "task/" + std::to_string(task) + "/children", children);
  }

 private:
  void write(int pid, const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ + "/" + std::to_string(pid) + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string path_ = "/tmp/children.XXXXXX";
};

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

TEST_CASE("children: the lists of all threads count") {
  const Root root;
  root.add(5, 1);
  root.list(5, 5, "7 8 ");
  root.list(5, 6, "9 ");
  CHECK(read_children(5, root.path()) == std::vector<int>{7, 8, 9});
}

TEST_CASE("children: without lists they are found by their parents") {
  const Root root;
  root.add(5, 1);
  root.add(7, 5);
  root.add(8, 7);
  CHECK(read_children(5, root.path()) == std::vector<int>{7});
  CHECK(read_children(7, root.path()) == std::vector<int>{8});
}

TEST_CASE("children: a process that is gone has none") {
  const Root root;
  CHECK(read_children(5, root.path()).empty());
  CHECK(read_pids("/nowhere/to/be/found").empty());
}

TEST_CASE("children: a child of this process is found") {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto children = read_children(getpid());
  CHECK(std::find(children.begin(), children.end(), child) != children.end());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_CASE("shared memory: a child that runs in ours is distinguished from one with a copy") {
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

TEST_CASE("threads: a process is its own first thread; one that is gone has none") {
  const auto threads = read_threads(getpid());
  CHECK(std::count(threads.begin(), threads.end(), getpid()) == 1);
  CHECK(read_threads(0x7ffffffe).empty());
  CHECK(are_all_threads(getpid(), threads));
  CHECK_FALSE(are_all_threads(getpid(), {}));
  std::vector<int> with_gone = threads;
  with_gone.back() = 0x7ffffffe;
  CHECK_FALSE(are_all_threads(getpid(), with_gone));
  CHECK(are_all_threads(0x7ffffffe, {}));
}
