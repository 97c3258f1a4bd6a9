#include "toolkit/symbols/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <utility>

namespace cmt::symbols {
namespace {

constexpr std::size_t rust_hash_size = 19;  // "::h" and 16 digits

bool ends_with_rust_hash(std::string_view name) {
  if (name.size() <= rust_hash_size) return false;
  const std::string_view hash = name.substr(name.size() - rust_hash_size);
  return hash.starts_with("::h") && hash.find_first_not_of("0123456789abcdef", 3) == std::string_view::npos;
}

/// What stands between two dollar signs; empty: not known.
std::string rust_escape(std::string_view escape) {
  constexpr std::array<std::pair<std::string_view, char>, 8> known{
      {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'}, {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}}};
  for (const auto& [name, character] : known) {
    if (name == escape) return std::string(1, character);
  }
  unsigned code = 0;
  if (!escape.starts_with('u')) return {};
  const char* const end = escape.data() + escape.size();
  const auto [stop, error] = std::from_chars(escape.data() + 1, end, code, 16);
  if (error != std::errc() || stop != end || code < 0x20 || code > 0x7e) return {};
  return std::string(1, static_cast<char>(code));
}

}  // namespace

std::string without_rust_escapes(std::string_view name) {
  if (!ends_with_rust_hash(name)) return std::string(name);
  name.remove_suffix(rust_hash_size);
  std::string text;
  bool begins_part = true;  // of a path; an underscore there stands before an escape
  while (!name.empty()) {
    if (begins_part && name.starts_with("_$")) name.remove_prefix(1);
    begins_part = name.starts_with("::");
    if (name.starts_with("..")) {
      text += "::";
      name.remove_prefix(2);
      continue;
    }
    const std::size_t end = name.front() == '$' ? name.find('$', 1) : std::string_view::npos;
    const std::string escaped = end == std::string_view::npos ? "" : rust_escape(name.substr(1, end - 1));
    if (!escaped.empty()) {
      text += escaped;
      name.remove_prefix(end + 1);
      continue;
    }
    const std::size_t plain = begins_part ? 2 : 1;
    text += name.substr(0, plain);
    name.remove_prefix(plain);
  }
  return text;
}

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return name == nullptr || status != 0 ? symbol : without_rust_escapes(name.get());
}

}  // namespace cmt::symbols
