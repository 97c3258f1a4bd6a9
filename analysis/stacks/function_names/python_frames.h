/// Names functions and packages of Python.
///
/// A frame of Python is a frame of the module "[python]". Its names are in the trace.
#pragma once

#include <string>
#include <string_view>

#include "cmt/stacks.h"

namespace cmt::analysis {

inline bool is_python(const StackTable& stacks, FrameId frame) {
  return stacks.module(stacks.frame(frame).module).is_interpreter();
}

/// The origin of a file of Python: the user, an installer of packages, or the interpreter.
enum class PythonOrigin { own, installed, standard };

struct PythonPackage {
  PythonOrigin origin = PythonOrigin::own;
  std::string name;
};

/// Returns the package of a source file or of an extension module:
///
///     /usr/lib/python3/dist-packages/numpy/core/numeric.py       installed, "numpy"
///     /usr/lib/python3.11/json/decoder.py                        standard, "python stdlib: json"
///     /usr/lib/python3.11/lib-dynload/_json.cpython-311-x.so     standard, "python stdlib: json"
///     <frozen importlib._bootstrap>                              standard, "python stdlib: importlib"
///     /srv/shop/db/rows.py                                       own, the folder "/srv/shop/db"
///     rows.py, <string>                                          own, "(program)"
PythonPackage python_package(std::string_view file);

/// Returns whether python_package() says more of a module of native code than its file's name does.
bool is_of_python_package(std::string_view module_path);

/// Returns whether a module of native code is a part of the standard library, which some builds of the interpreter
/// contain and others load.
bool is_of_standard_library(std::string_view module_path);

/// Returns a source file as reports name it: from its package on, or with one folder. "numpy/core/numeric.py",
/// "json/decoder.py", "db/rows.py".
std::string_view python_file(std::string_view file);

/// Returns a function as reports name it: "load_rows (db/rows.py)", and with `has_line` "load_rows (db/rows.py:41)".
std::string python_function(const FrameName& name, bool has_line);

/// Returns whether a text is one of python_function().
bool is_python_function(std::string_view text);

}  // namespace cmt::analysis
