// Descendants are found in a made-up /proc, and stay in the set.
#include "cmtwatch/sample/process_set.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using cmt::watch::ProcessSet;

namespace {

/// A made-up /proc with lists of children.
class Processes {
 public:
  Processes() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  ~Processes() { std::filesystem::remove_all(path_); }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  const std::string& path() const { return path_; }

  void set_children(int pid, const std::string& children) const {
    const std::filesystem::path task = path_ + "/" + std::to_string(pid) + "/task/" + std::to_string(pid);
    std::filesystem::create_directories(task);
    std::ofstream(task / "children") << children;
  }

 private:
  std::string path_ = "/tmp/process_set.XXXXXX";
};

std::vector<int> parents_in(ProcessSet& set) {
  std::vector<int> parents;
  for (const ProcessSet::Member& member : set.refresh()) parents.push_back(member.parent);
  return parents;
}

}  // namespace

TEST_CASE("process set: named processes stay alone") {
  const Processes proc;
  proc.set_children(5, "7 ");
  ProcessSet set(ProcessSet::Includes::named, proc.path());
  set.add(5);
  CHECK(set.refresh_pids() == std::vector<int>{5});
}

TEST_CASE("process set: descendants come after their parents, and stay when another process adopts them") {
  const Processes proc;
  proc.set_children(5, "7 ");
  proc.set_children(7, "8 ");
  ProcessSet set(ProcessSet::Includes::descendants, proc.path());
  set.add(5);
  CHECK(set.refresh_pids() == std::vector<int>{5, 7, 8});
  CHECK(parents_in(set) == std::vector<int>{0, 5, 7});
  proc.set_children(5, "");
  set.remove(7);
  CHECK(set.refresh_pids() == std::vector<int>{5, 8});
}

TEST_CASE("process set: the children of a process may be meant without it") {
  const Processes proc;
  proc.set_children(1, "5 ");
  ProcessSet set(ProcessSet::Includes::descendants, proc.path());
  set.add_children_of(1);
  CHECK(set.refresh_pids() == std::vector<int>{5});
}
