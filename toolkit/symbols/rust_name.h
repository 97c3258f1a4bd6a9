#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cmt::symbols {

/// A Rust name from a symbol of the v0 form, "_R...", as RFC 2603 describes it: without hashes of crates, lifetimes and
/// types of constants. Nothing where the symbol is not of that form, or the name longer than 64 KiB.
///
///     <alloc::vec::Vec<u8>>::push     _RNvMNtC5alloc3vecINtB2_3VechE4push
std::optional<std::string> rust_v0_name(std::string_view symbol);

/// What is left of a Rust name of the legacy form after C++'s rules: without its hash, and with the characters that
/// "$LT$" and the like stand for. Other names stay as they are.
///
///     <alloc::vec::Vec<T> as core::ops::Drop>::drop
///     _$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$::drop::h0123456789abcdef
std::string without_rust_escapes(std::string_view name);

}  // namespace cmt::symbols
