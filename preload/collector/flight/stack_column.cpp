// Encodes and decodes columns of stacks.

#include "preload/collector/flight/stack_column.h"

#include <algorithm>

#include "libcmt/format/coding.h"

namespace cmt::collector {
namespace {

enum Rule : std::uint64_t { allocating = 1, releasing_too = 3 };

bool only_releases(Kind kind) { return traits(kind).releases && !traits(kind).allocates; }

}  // namespace

std::string put_stack_column(std::span<const EventStack> stacks) {
  const auto has_stack = [](const EventStack& each) { return each.stack != 0; };
  if (std::none_of(stacks.begin(), stacks.end(), has_stack)) return {};
  const bool has_releases = std::any_of(
      stacks.begin(), stacks.end(), [](const EventStack& each) { return each.stack != 0 && only_releases(each.kind); });
  format::VarintWriter out(stacks.size());
  out.put(has_releases ? releasing_too : allocating);
  std::uint64_t last = 0;
  for (const auto& [kind, stack] : stacks) {
    const bool releases = only_releases(kind);
    if (!traits(kind).allocates && !(releases && has_releases)) continue;
    const std::uint64_t step = format::zigzag(stack - last);
    out.put(has_releases ? step << 1 | (releases ? 1 : 0) : step);
    last = stack;
  }
  return out.take();
}

StackColumn take_stack_column(std::string_view bytes) {
  StackColumn column;
  if (bytes.empty()) return column;
  format::Cursor cursor(bytes);
  column.has_releases = cursor.varint() == releasing_too;
  for (std::uint64_t last = 0; !cursor.at_end();) {
    const std::uint64_t value = cursor.varint();
    const bool releases = column.has_releases && (value & 1) != 0;
    last += format::unzigzag(column.has_releases ? value >> 1 : value);
    column.values.push_back({releases ? Kind::free : Kind::malloc, static_cast<StackId>(last)});
  }
  return column;
}

}  // namespace cmt::collector
