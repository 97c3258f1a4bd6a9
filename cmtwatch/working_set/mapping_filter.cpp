#include "cmtwatch/working_set/mapping_filter.h"

#include <algorithm>
#include <array>

#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

using Kind = MappingFilter::Kind;

constexpr std::array<std::string_view, 4> kind_names{"heap", "anonymous", "file", "stack"};

std::optional<Kind> kind_of(const process::Mapping& mapping) {
  if (mapping.name == "[heap]") return Kind::heap;
  if (mapping.name.empty() || mapping.name.starts_with("[anon")) return Kind::anonymous;
  if (mapping.name.starts_with("/")) return Kind::file;
  if (mapping.name.starts_with("[stack")) return Kind::stack;
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

std::string_view name_of(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::optional<std::set<Kind>> parse_mapping_kinds(std::string_view text) {
  std::set<Kind> kinds;
  for (;;) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto name = std::find(kind_names.begin(), kind_names.end(), word);
    if (name == kind_names.end()) return std::nullopt;
    kinds.insert(static_cast<Kind>(name - kind_names.begin()));
    if (word.size() == text.size()) return kinds;
    text.remove_prefix(word.size() + 1);
  }
}

}  // namespace cmt::watch
