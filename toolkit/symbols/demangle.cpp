// Demangles names with libiberty, the library of GCC, binutils and gdb. It bounds the depth of a name but not its
// length: back references let a symbol of 300 bytes name a type of 2^40 parts. Printing stops at 64 KiB.

#include "toolkit/symbols/demangle.h"

// libiberty.h declares a basename() that <cstring> of glibc contradicts, except where this macro is defined.
#define HAVE_DECL_BASENAME 1
#include <demangle.h>

#include <cassert>
#include <csetjmp>
#include <cstring>
#include <memory>

namespace cmt::symbols {
namespace {

/// Receives the name piece by piece, in memory that does not grow, because longjmp() runs no destructors.
struct PrintedName {
  static constexpr std::size_t bytes_max = 65536;
  std::unique_ptr<char[]> text = std::make_unique_for_overwrite<char[]>(bytes_max);  // a stack may be smaller
  std::size_t size = 0;
  std::jmp_buf too_long;
};

/// A jump is the only way to stop libiberty. It leaks the buffer of one identifier, if that is in Punycode.
void print_piece(const char* piece, std::size_t size, void* destination) {
  auto& name = *static_cast<PrintedName*>(destination);
  assert(name.size <= PrintedName::bytes_max);
  if (size == 0) return;  // `piece` may be NULL then
  if (size > PrintedName::bytes_max - name.size) std::longjmp(name.too_long, 1);
  std::memcpy(name.text.get() + name.size, piece, size);
  name.size += size;
}

using Demangle = int (*)(const char*, int, demangle_callbackref, void*);

/// Empty if the symbol is not of the form that `demangle` reads, or its name is longer than 64 KiB.
std::string printed_by(Demangle demangle, const std::string& symbol) {
  PrintedName name;
  if (setjmp(name.too_long) != 0) return {};
  if (demangle(symbol.c_str(), DMGL_PARAMS | DMGL_TYPES, print_piece, &name) == 0) return {};
  return std::string(name.text.get(), name.size);
}

}  // namespace

std::string demangled(const std::string& symbol) {
  const bool is_cpp = symbol.starts_with("_Z");  // Rust's older form too
  if (!is_cpp && !symbol.starts_with("_R")) return symbol;
  std::string name = printed_by(rust_demangle_callback, symbol);
  if (name.empty() && is_cpp) name = printed_by(cplus_demangle_v3_callback, symbol);
  return name.empty() ? symbol : name;
}

}  // namespace cmt::symbols
