/// Names of C++ and Rust functions from the symbols of their programs.
#pragma once

#include <string>

namespace cmt::symbols {

/// A symbol's name as the source has it: "list::push(int)" of "_ZN4list4pushEi". Reads C++ names and both forms of Rust
/// names, "_R..." (v0, RFC 2603) and "_ZN...17h<hash>E" (legacy). Rust names are without hashes, lifetimes and types of
/// constants. Returns all other symbols unchanged, and those whose name is longer than 64 KiB.
///
///     <alloc::vec::Vec<u8>>::push                      _RNvMNtC5alloc3vecINtB2_3VechE4push
///     <alloc::vec::Vec<T> as core::ops::Drop>::drop _ZN61_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop...
std::string demangled(const std::string& symbol);

}  // namespace cmt::symbols
