#include "cmtwatch/mapping_filter.h"

#include <algorithm>
#include <array>

#include "process/system.h"

namespace cmt::watch {
namespace {

using Kind = MappingFilter::Kind;

constexpr std::array<std::string_view, 4> names{"heap", "anonymous", "file", "stack"};

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::optional<Kind> kind_of(const process::Mapping& mapping) {
  if (mapping.name == "[heap]") return Kind::heap;
  if (mapping.name.empty() || begins(mapping.name, "[anon")) return Kind::anonymous;
  if (begins(mapping.name, "/")) return Kind::file;
  if (begins(mapping.name, "[stack")) return Kind::stack;
  return std::nullopt;
}

}  // namespace

bool MappingFilter::takes(const process::Mapping& mapping) const {
  if (!kinds.empty()) {
    const auto kind = kind_of(mapping);
    if (!kind || !kinds.contains(*kind)) return false;
  }
  const bool permitted = std::all_of(permissions.begin(), permissions.end(), [&](char letter) {
    return mapping.permissions.find(letter) != std::string::npos;
  });
  return permitted && (mapping.end - mapping.begin) / process::page_bytes() > longer_than;
}

std::string_view name_of(Kind kind) { return names[static_cast<std::size_t>(kind)]; }

std::optional<std::set<Kind>> parse_mapping_kinds(std::string_view text) {
  std::set<Kind> kinds;
  for (;;) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto name = std::find(names.begin(), names.end(), word);
    if (name == names.end()) return std::nullopt;
    kinds.insert(static_cast<Kind>(name - names.begin()));
    if (word.size() == text.size()) return kinds;
    text.remove_prefix(word.size() + 1);
  }
}

}  // namespace cmt::watch
