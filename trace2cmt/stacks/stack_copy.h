/// Copies call stacks between tables, for joined traces (input/inputs.h) and for --anonymise.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cmt/stacks.h"

namespace cmt::trace2cmt {

/// Copies stacks from one table to another, each when it is first needed. Memory: 4 bytes for each node, frame and
/// module of the first table.
class StackCopy {
 public:
  /// Functions that change a module or a frame before it is added. `module` of the frame is already the number in the
  /// new table.
  struct Changes {
    std::function<void(cmt::Module&)> module;
    std::function<void(cmt::Frame&)> frame;
  };

  StackCopy(const cmt::StackTable& from, cmt::StackTable& to, Changes changes)
      : from_(from), to_(to), changes_(std::move(changes)) {}

  /// The number of a stack in the new table.
  cmt::StackId copy(cmt::StackId id);

  /// Copies the names of the copied frames, and the times at which their modules were unloaded.
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
