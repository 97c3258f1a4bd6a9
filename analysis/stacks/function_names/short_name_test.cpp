// Checks the short names of functions of C, C++, Rust and Go.
#include "analysis/stacks/function_names/short_name.h"

#include <doctest/doctest.h>

#include <array>
#include <string_view>

namespace cmt::analysis {
namespace {

struct ShortName {
  std::string_view function, expected;
};

constexpr std::array<ShortName, 41> short_names{{
    {"main", "main"},
    {"", ""},
    {"parse.part.0", "parse.part.0"},
    {"parse(char const*) [clone .part.0]", "parse"},
    {"parse [clone .cold]", "parse"},
    {"48 - 55 bytes", "48 - 55 bytes"},
    {"[other, 12 functions]", "[other, 12 functions]"},
    {"int keep<a, b>(char (*)(int))", "keep<>"},
    {"void (anonymous namespace)::parse<int>(char const*)", "(anonymous namespace)::parse<>"},
    {"std::enable_if<true, int>::type a::(anonymous namespace)::f<(char)60>(int (*)(char)) const",
     "a::(anonymous namespace)::f<>"},
    {"std::_Rb_tree<int, std::pair<int const, char> >::_Auto_node::_Auto_node<std::tuple<int const&>, std::tuple<> >"
     "(std::tuple<int const&>&&, std::tuple<>&&)",
     "std::_Rb_tree<>::_Auto_node::_Auto_node<>"},
    {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda#1}::operator()"},
    {"f(int)::{lambda()#2}::operator()() const", "f::{lambda#2}::operator()"},
    {"A::f() const::{lambda(auto:1)#1}::operator()<int>(int) const", "A::f::{lambda#1}::operator()<>"},
    {"main::'lambda'(int)::operator()(int) const", "main::'lambda'::operator()"},
    {"A::~A()", "A::~A"},
    {"operator new(unsigned long)", "operator new"},
    {"operator new[](unsigned long)", "operator new[]"},
    {"A::operator std::vector<int, b> const*() const", "A::operator std::vector<> const*"},
    {"bool operator< <int>(A<int> const&, A<int> const&)", "operator<<>"},
    {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", "std::operator<<<>"},
    {"A::operator->() const", "A::operator->"},
    {"A::operator[](int)", "A::operator[]"},
    {"bool operator<=>(A, B)", "operator<=>"},
    {"my_operator(int)", "my_operator"},
    {"int (*choose<int>(char))(int)", "choose<>"},
    {"decltype (f({parm#1})) forward<int>(int&&)", "forward<>"},
    {"non-virtual thunk to B::f(int)", "B::f"},
    {"std::__cxx11::to_string[abi:cxx11](int)", "std::__cxx11::to_string[abi:cxx11]"},
    {"main.(*Server).Handle", "main.(*Server).Handle"},
    {"main.(*Server).Handle.func1", "main.(*Server).Handle.func1"},
    {"<alloc::vec::Vec<u8> as core::clone::Clone>::clone", "<alloc::vec::Vec<u8> as core::clone::Clone>::clone"},
    {"app::run::{{closure}}", "app::run::{{closure}}"},
    {"<module>", "<module>"},
    {"f(", "f"},
    {"py::Rows.load:/app/rows.py", "Rows.load (rows.py)"},
    {"py::<module>:<string>", "<module> (<string>)"},
    {"parse file:///app/server.js:12:3", "parse (server.js:12)"},
    {"get size /app/server.js:12", "get size (server.js:12)"},
    {"emit node:events:465:44", "emit (node:events:465)"},
    {"(<[{", "(<[{"},
}};

}  // namespace

TEST_CASE("a function's name is shortened to what people call it") {
  for (const ShortName& each : short_names) {
    CAPTURE(each.function);
    CHECK(short_name(each.function) == each.expected);
  }
}

}  // namespace cmt::analysis
