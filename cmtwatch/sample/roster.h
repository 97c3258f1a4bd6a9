#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cmt::watch {

/// Whom a recording is about, moment by moment.
class Roster {
 public:
  enum class Whom { named, descendants, all };

  /// `root` is the /proc that they are looked for in.
  Roster(Whom whom, std::string root) : whom_(whom), root_(std::move(root)) {}

  /// A process that is meant; with `descendants` its children too, theirs and so on, as they come.
  void add(int pid) { pids_.insert(pid); }

  /// As add(), but the process itself is not meant: the children that are or become its own are.
  void add_children_of(int pid) { parents_.insert(pid); }

  /// Those who are meant now, as far as it is known. Descendants that were seen once stay, whoever adopts them.
  std::vector<int> read();

  /// One of them has ended: whoever gets its pid is another.
  void remove(int pid) { pids_.erase(pid); }

 private:
  void find_descendants();

  Whom whom_;
  std::string root_;
  std::set<int> pids_;
  std::set<int> parents_;
};

}  // namespace cmt::watch
