#pragma once

#include <string>
#include <string_view>

namespace cmt::symbols {

/// A symbol's name as the source has it: "list::push(int)" of "_ZN4list4pushEi". C++ names, and Rust's of the legacy
/// form, of which the hash is left out. All others stay as they are: C, and Rust's v0 form ("_RNv..."), which the C++
/// library cannot read.
std::string demangled(const std::string& symbol);

/// What is left of a Rust name of the legacy form after C++'s rules: without its hash, and with the characters that
/// "$LT$" and the like stand for. Other names stay as they are.
///
///     <alloc::vec::Vec<T> as core::ops::Drop>::drop
///     _$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$::drop::h0123456789abcdef
std::string without_rust_escapes(std::string_view name);

}  // namespace cmt::symbols
