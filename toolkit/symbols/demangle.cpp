#include "toolkit/symbols/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "toolkit/symbols/rust_name.h"

namespace cmt::symbols {

std::string demangled(const std::string& symbol) {
  if (symbol.starts_with("_R")) return rust_v0_name(symbol).value_or(symbol);
  if (!symbol.starts_with("_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return name == nullptr || status != 0 ? symbol : without_rust_escapes(name.get());
}

}  // namespace cmt::symbols
