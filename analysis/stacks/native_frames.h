/// The stacks of a Python or Node program as tools show them (--native).
///
/// A stack of such a program has frames of Python and native ones. The recorder has replaced each evaluation loop of
/// the interpreter by the frames of Python that it ran. Outermost first, [x] are the interpreter's, x() is Python's:
///
///     as recorded   _start [main] [Py_RunMain] <module>() [vectorcall] load_rows() [list_resize] [realloc_raw]
///     fold          <module>() load_rows() [list_resize] [realloc_raw]
///     none          <module>() load_rows()
///
/// `fold` leaves out the frames of the interpreter that have a frame of Python further inside: they only call it.
/// Frames of extension modules and other libraries stay. Frames further inside than all of Python's stay too, since
/// they allocate. But those of the interpreter and of the C library only hand memory on: a stack is charged to the
/// innermost frame that is neither. For lines, all native frames there do: which line of Python allocates is the
/// question.
///
/// The interpreter's module is the one that most often calls Python: its frame is directly outside of Python's. A name
/// would not serve, because a program that embeds Python may contain it. The modules of the standard library in C are
/// of it too, since some builds contain them.
///
/// A frame that only leads from a call of a class to its __init__ is left out too. So are the recorder's own, which
/// take the place of the interpreter's allocators (cmttrace --pool).
///
/// The frames further outside than all of Python's are the interpreter's start if each is of the interpreter, of a
/// program "python3", or of the C library. Then they are left out. In a program that embeds Python only the
/// interpreter's are.
///
/// Stacks with JavaScript are shown in the same way. Its frames are of no module, and have a name with a place from a
/// perf map: "render /srv/app.js:6:16". The interpreter is the node program, and code of V8 that its list leaves out:
/// copies of builtins and handlers of bytecodes. For libraries (--by=library) nothing is left out, since no module
/// contains JavaScript.
///
/// Stacks without a frame of Python or JavaScript are shown as they were recorded. So are all stacks of other programs.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/stacks/labels.h"
#include "cmt/stacks.h"

namespace cmt::analysis {

/// Which native frames of a stack with frames of Python are shown.
enum class NativeFrames { all, fold, none };

std::optional<NativeFrames> parse_native(std::string_view text);

/// Stacks as they are shown, with the names of frames.
struct ShownStacks {
  StackTable stacks;
  std::vector<StackId> nodes{};           ///< by recorded stack: the shown one; empty: the same
  ModuleId handing_on_from = no_modules;  ///< see ChargeRule

  StackId of(StackId recorded) const { return nodes.empty() ? recorded : nodes[recorded]; }
  /// Returns the rule for these stacks.
  ChargeRule charges(ChargeRule rule) const {
    rule.handing_on_from = handing_on_from;
    return rule;
  }
};

/// Returns stacks as they are shown. `named` has their frames with names, and `nodes` the stacks, which may be in
/// `named` too. `key` is the property by which stacks are put together. The texts are those of `named`. Memory: that of
/// a second table, in a trace with frames of Python.
ShownStacks show_stacks(StackTable named, std::span<const StackNode> nodes, NativeFrames native, Key key);

/// Returns the figures of shown stacks. Stacks that differ only in frames that are left out are one.
Uses shown_uses(Uses uses, const ShownStacks& shown);

}  // namespace cmt::analysis
