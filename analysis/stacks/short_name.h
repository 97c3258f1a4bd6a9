#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cmt::analysis {

/// A function's name as people say it: without its result and arguments, and with empty template arguments. What names
/// the function itself is kept: classes, the method, operators, lambdas, Go's receivers.
///
///     int* std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)    std::vector<>::emplace_back<>
///     main::{lambda(int)#1}::operator()(int) const                             main::{lambda#1}::operator()
///     main.(*Server).Handle                                                    main.(*Server).Handle
///
/// Of a name without arguments, such as those of C, nothing is taken but template arguments.
std::string short_name(std::string_view function);

/// Behind the bracket that closes the one at `at`, or the end.
std::size_t end_of_brackets(std::string_view text, std::size_t at);

}  // namespace cmt::analysis
