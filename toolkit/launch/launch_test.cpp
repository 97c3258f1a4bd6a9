// Checks statuses, signals, redirected streams and variables of a command that is launched.

#include "toolkit/launch/launch.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include "toolkit/command/command_line.h"

using namespace cmt::launch;

namespace {

Launch shell(const std::string& script) {
  return {.words = {"sh", "-c", script}, .output = {}, .error = {}, .environment = {}};
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A name in a folder of its own, which goes with it.
struct Scratch {
  Scratch() { REQUIRE(mkdtemp(folder.data()) != nullptr); }
  ~Scratch() {
    unlink(file().c_str());
    rmdir(folder.c_str());
  }
  std::string file() const { return folder + "/out"; }
  std::string folder = "/tmp/launch.XXXXXX";
};

}  // namespace

TEST_CASE("launch: the status and the signal of a command come back") {
  CHECK(RunningCommand(shell("exit 7")).wait().status == 7);
  CHECK(RunningCommand(shell("kill -TERM $$")).wait().signal == SIGTERM);
}

TEST_CASE("launch: a missing command and one that is no program have statuses of their own") {
  const auto status_of = [](const std::string& word) {
    try {
      RunningCommand({.words = {word}, .output = {}, .error = {}, .environment = {}}).wait();
    } catch (const LaunchError& error) {
      return error.status;
    }
    return 0;
  };
  CHECK(status_of("/nowhere/to/be/found") == cmt::command::status_not_found);
  CHECK(status_of("/etc/passwd") == cmt::command::status_cannot_start);
}

TEST_CASE("launch: a signal sent to the launcher reaches the command") {
  RunningCommand launched(shell("trap 'exit 9' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done"));
  CHECK(launched.wait().status == 9);
}

TEST_CASE("launch: the command finds no signal blocked or ignored that was not before") {
  const Scratch scratch;
  const std::string script = "grep -E 'SigBlk|SigIgn' /proc/self/status >" + scratch.file();
  REQUIRE(std::system(script.c_str()) == 0);
  const std::string before = text_of(scratch.file());
  RunningCommand(shell(script)).wait();
  CHECK(text_of(scratch.file()) == before);
}

TEST_CASE("launch: streams go to files and the environment is added to") {
  const Scratch scratch;
  Launch launch = shell("echo \"$CMT_LAUNCH_TEST\" >&2");
  launch.error = scratch.file();
  launch.environment = {{"CMT_LAUNCH_TEST", "a b"}};
  CHECK(RunningCommand(launch).wait().status == 0);
  CHECK(text_of(scratch.file()) == "a b\n");
  launch.error = "/nowhere/to/be/found";
  CHECK_THROWS_AS(RunningCommand(launch).wait(), std::system_error);
}
