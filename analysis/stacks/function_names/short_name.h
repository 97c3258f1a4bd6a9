/// Shortens the names of functions for reports.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cmt::analysis {

/// Returns a function's name as people say it: without its result and arguments, and with empty template arguments. The
/// parts that name the function itself stay: classes, the method, operators, lambdas, Go's receivers.
///
///     int* std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)    std::vector<>::emplace_back<>
///     main::{lambda(int)#1}::operator()(int) const                             main::{lambda#1}::operator()
///     main.(*Server).Handle                                                    main.(*Server).Handle
///     py::load:/app/rows.py                                                    load (rows.py)
///     load /app/rows.js:12:3                                                   load (rows.js:12)
///     main.<locals>.load (app/rows.py)                                         the same: of python_frames.h
///
/// A name without arguments, such as those of C, loses only its template arguments.
std::string short_name(std::string_view function);

/// Returns whether a text names a function of JavaScript by its place: "load /app/rows.js:12:3".
bool is_javascript_function(std::string_view text);

/// Returns whether a name ends with the place of its function, as a perf map has those of Python and JavaScript.
bool has_place(std::string_view function);

/// Returns the index after the bracket that closes the one at `at`; the end if none does.
std::size_t end_of_brackets(std::string_view text, std::size_t at);

}  // namespace cmt::analysis
