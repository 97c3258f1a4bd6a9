/// Merges the stacks of two traces into one tree of functions, so that --diff can compare a stack's figures.
///
/// The traces may be of different builds. So a stack is a chain of names of functions, never of addresses. A function
/// is in the chain whether it is inlined or not:
///
///     built with -O0    main, grow, push, malloc                   chain: main, grow, push
///     with -O2          main [grow, push inlined], malloc          the same
///
/// Allocation functions are left out, since libraries inline them in many ways. Only the outermost function of a stack
/// may be one. Suffixes that compilers append to the
/// names of functions which they split or specialise (".constprop.0", ".part.1", ".cold") are cut off. A function
/// without a name is known by its library.
///
/// A function is the same in another library or program, unless several libraries of a trace have a function of that
/// name. Then the library's name without a version is part of the key: "libx.so" for "libx.so.1.2". If two libraries of
/// the trace would share that name, the version stays. All programs (no ".so" in the name) count as one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/differences/diff_use.h"
#include "analysis/groups/group.h"
#include "cmt/stacks.h"

namespace cmt::analysis {

/// Returns "libx.so" for "libx.so.1.2". Other names stay as they are.
std::string unversioned(const std::string& library);

/// Returns a function's name without suffixes of compilers: "f" for "f.constprop.0" and for "f [clone .part.1]".
std::string_view without_clone(std::string_view function);

/// A name without its signature: "a::f<int>" for "void a::f<int>(int)".
struct BareName {
  std::string text;
  bool had_signature = false;
};

/// Returns a function's name without its result and arguments. Blanks and "const" in template arguments are left out:
/// compilers and debuggers write them in different ways.
BareName bare_name(std::string_view function);

/// One side: the stacks of a trace, with names, and what they have.
struct DiffSide {
  const StackTable& stacks;
  const Uses& uses;
  ModuleId handing_on_from = no_modules;  ///< see ChargeRule
};

/// The functions of both traces.
struct MergedStacks {
  StackTable stacks;  ///< a frame is a function, a module a library
  DiffUses uses;
};

/// Merges the stacks that have allocated. `options` chooses functions, lines or libraries, the allocation functions,
/// and the functions that are hidden. Hidden functions are in no merged stack. If both traces name a library or a file,
/// the name of the second trace is kept. Memory: the same as both tables.
MergedStacks merge_stacks(const DiffSide& before, const DiffSide& after, const GroupOptions<DiffUse>& options);

}  // namespace cmt::analysis
