// Distinguishes kinds of defects by a hash of their words, so that a bad line allocates nothing here.

#include "libcmt/trace/first_defects.h"

#include <algorithm>

namespace cmt {
namespace {

/// FNV-1a.
std::uint64_t add_word(std::uint64_t hash, std::string_view word) {
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::uint64_t kind_of_defect(std::string_view what) {
  if (what.starts_with("expected ")) what = what.substr(0, what.find(": "));
  std::uint64_t kind = 0xcbf29ce484222325;
  while (!what.empty()) {
    const std::size_t length = std::min(what.find(' '), what.size());
    const std::string_view word = what.substr(0, length);
    if (word.find_first_of("0123456789") == std::string_view::npos) kind = add_word(add_word(kind, word), " ");
    what.remove_prefix(std::min(length + 1, what.size()));
  }
  return kind;
}

std::optional<std::size_t> FirstDefects::counted_by(std::string_view what) {
  const std::uint64_t kind = kind_of_defect(what);
  auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& each) { return each.kind == kind; });
  const bool is_known = found != kinds_.end();
  if (!is_known && kinds_.size() < kinds_max) found = kinds_.insert(kinds_.end(), {kind, 0});
  if (found == kinds_.end()) --found;
  const bool is_first = !is_known && found->kind == kind;
  if (kept_ >= kept_always_ && !is_first) return found->last;
  found->last = kept_++;
  return std::nullopt;
}

}  // namespace cmt
