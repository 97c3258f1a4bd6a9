#include "cmtwatch/recording/breakdown.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace cmt::watch {
namespace {

using process::Mapping;

constexpr std::uint64_t guard_bytes_max = 64 * 1024;

/// Parts that are shown first, whatever their size.
constexpr std::string_view first_parts[] = {"stacks", "thread stacks (guessed)", "heap", "anonymous", "sockets"};

bool is_guard(const Mapping& mapping) {
  return mapping.name.empty() && mapping.permissions.starts_with("---") &&
         mapping.end - mapping.begin <= guard_bytes_max;
}

bool is_private_data(const Mapping& mapping) { return mapping.name.empty() && mapping.permissions.starts_with("rw-p"); }

/// The files that code is run from: programs and libraries.
std::set<std::string_view> code_files(const std::vector<Mapping>& mappings) {
  std::set<std::string_view> names;
  for (const Mapping& mapping : mappings) {
    if (mapping.permissions.find('x') != std::string::npos && mapping.name.starts_with("/")) names.insert(mapping.name);
  }
  return names;
}

/// What a mapping belongs to, given the one before it that touches it, or none, and the files that code is run from.
std::string part_name(const Mapping& mapping, const Mapping* before, const std::set<std::string_view>& code) {
  if (mapping.name.starts_with("[stack")) return "stacks";
  if (mapping.name == "[heap]") return "heap";
  if (mapping.name.starts_with("socket:")) return "sockets";
  if (!mapping.name.empty()) return mapping.name;
  if (before && is_private_data(mapping) && is_guard(*before)) return "thread stacks (guessed)";
  if (before && is_private_data(mapping) && code.contains(before->name)) return before->name;
  return "anonymous";
}

void add(Part& sum, const Part& part) {
  sum.mappings += part.mappings;
  sum.resident_bytes += part.resident_bytes;
  sum.proportional_bytes += part.proportional_bytes;
  sum.anonymous_bytes += part.anonymous_bytes;
  sum.swapped_bytes += part.swapped_bytes;
}

std::map<std::string, Part> by_name(const std::vector<Part>& parts) {
  std::map<std::string, Part> sums;
  for (const Part& part : parts) {
    Part& sum = sums[part.name];
    sum.name = part.name;
    add(sum, part);
  }
  return sums;
}

}  // namespace

std::vector<Part> parts_of(const std::vector<Mapping>& mappings) {
  std::vector<Part> parts;
  const std::set<std::string_view> code = code_files(mappings);
  const Mapping* before = nullptr;
  for (const Mapping& mapping : mappings) {
    const Mapping* const touching = before && before->end == mapping.begin ? before : nullptr;
    parts.push_back({part_name(mapping, touching, code), 1, mapping.resident_bytes, mapping.proportional_bytes,
                     mapping.anonymous_bytes, mapping.swapped_bytes});
    before = &mapping;
  }
  return parts;
}

Breakdown break_down(const std::vector<std::vector<Mapping>>& processes, std::size_t named_max) {
  std::vector<Part> all;
  for (const auto& mappings : processes) {
    const std::vector<Part> parts = parts_of(mappings);
    all.insert(all.end(), parts.begin(), parts.end());
  }
  std::map<std::string, Part> sums = by_name(all);
  Breakdown breakdown;
  breakdown.sum.name = "in all";
  for (const auto& [name, part] : sums) add(breakdown.sum, part);
  for (const std::string_view name : first_parts) {
    if (auto part = sums.extract(std::string(name))) breakdown.parts.push_back(std::move(part.mapped()));
  }
  std::vector<Part> named;
  for (auto& [name, part] : sums) named.push_back(std::move(part));
  std::stable_sort(named.begin(), named.end(),
                   [](const Part& a, const Part& b) { return a.resident_bytes > b.resident_bytes; });
  Part others{.name = "others"};
  for (std::size_t i = 0; i < named.size(); ++i)
    i < named_max ? breakdown.parts.push_back(named[i]) : add(others, named[i]);
  if (others.mappings != 0) breakdown.parts.push_back(others);
  return breakdown;
}

}  // namespace cmt::watch
