#pragma once

#include <string>

namespace cmt::watch {

/// A field that may hold anything, in quotes as RFC 4180 has it.
inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace cmt::watch
