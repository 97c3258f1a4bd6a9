// The task thread: order, exceptions, and its end.

#include "libcmt/trace/task_thread.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace cmt;

TEST_CASE("task thread: tasks are carried out in their order, more of them than may wait") {
  std::vector<int> done;
  TaskThread thread;
  std::uint64_t fifth = 0;
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t task = thread.post([&done, i] { done.push_back(i); });
    if (i == 5) fifth = task;
  }
  thread.wait_for(fifth);
  thread.wait_for_all();
  REQUIRE(done.size() == 500);
  for (int i = 0; i < 500; ++i) CHECK(done[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("task thread: what a task throws is thrown to its owner, and what is behind it is not done") {
  bool is_done = false;
  TaskThread thread;
  thread.post([] { throw std::runtime_error("no space"); });
  CHECK_THROWS_WITH(thread.wait_for_all(), "no space");
  CHECK_THROWS_WITH(thread.post([&] { is_done = true; }), "no space");
  CHECK_FALSE(is_done);
}

TEST_CASE("task thread: its end waits for the tasks") {
  int done = 0;
  {
    TaskThread thread;
    for (int i = 0; i < 20; ++i) thread.post([&] { ++done; });
  }
  CHECK(done == 20);
}
