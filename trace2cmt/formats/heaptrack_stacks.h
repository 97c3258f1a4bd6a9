#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmt/stacks.h"

namespace cmt::trace2cmt {

/// The call stacks of a heaptrack log: in the raw form modules and addresses, in the interpreted form names too, and of
/// modules their paths only. A module that is not in the next list of modules has gone.
class HeaptrackStacks {
 public:
  /// Takes a record, `sign` being its first character, if it is one of modules or stacks. False for any other, and for
  /// one that is not understood.
  bool take(char sign, std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks);

  /// The stack of a node's number; 0 where the log does not have it.
  cmt::StackId find(std::uint64_t number) const { return number < nodes_.size() ? nodes_[number] : 0; }

 private:
  struct LoadedModule {
    cmt::ModuleId id;
    std::uint64_t begin, end;
  };

  bool take_module(std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks);
  void begin_modules() { before_ = std::exchange(loaded_, {}); }
  void settle_modules(std::uint64_t time_ns, cmt::StackTable& stacks);
  bool take_node(std::string_view line, cmt::StackTable& stacks);
  bool take_string(std::string_view line);
  bool take_address(std::string_view line, cmt::StackTable& stacks);
  cmt::ModuleId module_at(std::uint64_t address) const;
  const std::string& text(std::uint64_t number) const { return strings_[number < strings_.size() ? number : 0]; }

  std::string program_;
  std::vector<LoadedModule> loaded_, before_;
  std::vector<cmt::StackId> nodes_{0};
  std::vector<std::string> strings_{{}};
  std::vector<cmt::FrameId> addresses_{0};  // of the interpreted form
};

}  // namespace cmt::trace2cmt
