/// Recognises a frame of CPython that is no function of the program, for reports and profiles that leave it out.
#pragma once

#include "cmt/stacks.h"

namespace cmt {

/// Returns whether a frame is one that the interpreter puts between a call of a class and its __init__, since 3.13. It
/// has no line and no file: CPython calls both of its names __init__.
inline bool is_call_of_init(const StackTable& table, FrameId frame) {
  const auto names = table.names(frame);
  return names.size() == 1 && names[0].line == 0 && names[0].function == "__init__" && names[0].file == "__init__" &&
         table.module(table.frame(frame).module).is_interpreter();
}

}  // namespace cmt
