/// Copies call stacks between tables, for joined traces (input/inputs.h) and for --anonymise.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cmt/stacks.h"

namespace cmt::trace2cmt {

/// Copies stacks from one table to another, each when it is asked for: several traces become one, or a trace loses what
/// identifies it. Memory: 4 bytes for each node, frame and module that the first table has.
class StackCopy {
 public:
  /// Changes a module, or a frame of a module, on its way. A changed frame has the number of its module in the new
  /// table.
  struct Changes {
    std::function<void(cmt::Module&)> module;
    std::function<void(cmt::Frame&)> frame;
  };

  StackCopy(const cmt::StackTable& from, cmt::StackTable& to, Changes changes)
      : from_(from), to_(to), changes_(std::move(changes)) {}

  /// The number of a stack in the new table.
  cmt::StackId copy(cmt::StackId id);

  /// Copies the names of the frames that were copied, and when their modules went.
  void copy_names();

 private:
  cmt::FrameId copy_frame(cmt::FrameId id);
  cmt::ModuleId copy_module(cmt::ModuleId id);

  const cmt::StackTable& from_;
  cmt::StackTable& to_;
  Changes changes_;
  std::vector<std::uint32_t> stacks_, frames_, modules_;  // by the first table's numbers; 0: not copied
  std::vector<cmt::StackId> path_;                        // scratch
};

}  // namespace cmt::trace2cmt
