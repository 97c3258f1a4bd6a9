/// The stacks of two traces as one tree of functions, so that what a stack has in one can be compared with the other.
///
/// The traces may be of different builds: so a stack is a chain of names of functions, never of addresses. A function
/// is in the chain whether it is inlined or not:
///
///     built with -O0    main, grow, push, malloc                   chain: main, grow, push
///     with -O2          main [grow, push inlined], malloc          the same
///
/// Allocation functions are left out, since libraries inline them in many ways. What compilers append to the names of
/// functions that they split or specialise (".constprop.0", ".part.1", ".cold") is cut off. A function without a name
/// is known by its library.
///
/// A function is the same in another library, or program, unless several libraries of a trace have one of that name.
/// Then libraries tell them apart, by their names without a version: "libx.so" of "libx.so.1.2", if no other library of
/// the trace would have that name too. All programs (no ".so" in the name) are one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/differences/diff_use.h"
#include "analysis/groups/group.h"
#include "cmt/stacks.h"

namespace cmt::analysis {

/// "libx.so" of "libx.so.1.2"; what is no shared library's stays.
std::string unversioned(const std::string& library);

/// A function's name without what compilers append: "f" of "f.constprop.0" and of "f [clone .part.1]".
std::string_view without_clone(std::string_view function);

/// "a::f<int>" of "void a::f<int>(int)".
struct BareName {
  std::string text;
  bool had_signature = false;
};

/// A function's name without its result and arguments. Of the template arguments blanks and "const" are left out, which
/// compilers and debuggers write in different ways.
BareName bare_name(std::string_view function);

/// One side: the stacks of a trace, with names, and what they have.
struct DiffSide {
  const StackTable& stacks;
  const Uses& uses;
};

/// The functions of both traces.
struct MergedStacks {
  StackTable stacks;  ///< a frame is a function, a module a library
  DiffUses uses;
};

/// Merges the stacks that have allocated. `options` has what frames are to be told apart by, and which functions are
/// skipped or hidden: these are in no stack. The names of the second trace's libraries and files are kept where both
/// have them. Memory: that of both tables.
MergedStacks merge_stacks(const DiffSide& before, const DiffSide& after, const GroupOptions<DiffUse>& options);

}  // namespace cmt::analysis
