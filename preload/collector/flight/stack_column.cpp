// Encodes and decodes columns of stacks.

#include "preload/collector/flight/stack_column.h"

#include <algorithm>
#include <array>
#include <functional>

#include "libcmt/format/coding.h"

namespace cmt::collector {
namespace {

/// The kinds of values, by their two lowest bits in a column that has other events than those that allocate.
constexpr std::array value_kinds{Kind::malloc, Kind::free, Kind::pool_malloc, Kind::pool_free};

}  // namespace

std::size_t stack_class(Kind kind) {
  if (traits(kind).allocates) return 0;
  if (traits(kind).releases) return 1;
  return kind == Kind::pool_malloc ? 2 : kind == Kind::pool_free ? 3 : value_kinds.size();
}

std::string put_stack_column(std::span<const EventStack> stacks) {
  std::array<bool, value_kinds.size() + 1> has_values{};
  for (const EventStack& each : stacks) has_values[stack_class(each.kind)] |= each.stack != 0;
  has_values.back() = false;
  if (std::none_of(has_values.begin(), has_values.end(), std::identity())) return {};
  has_values[0] = true;
  const bool is_plain = std::none_of(has_values.begin() + 1, has_values.end(), std::identity());
  format::VarintWriter out(stacks.size());
  out.put(std::uint64_t{is_plain ? 0u : 1u});
  std::uint64_t last = 0;
  for (const auto& [kind, stack] : stacks) {
    const std::size_t its_class = stack_class(kind);
    if (!has_values[its_class]) continue;
    const std::uint64_t step = format::zigzag(stack - last);
    out.put(is_plain ? step : step << 2 | its_class);
    last = stack;
  }
  return out.take();
}

std::vector<EventStack> take_stack_column(std::string_view bytes) {
  std::vector<EventStack> values;
  if (bytes.empty()) return values;
  format::Cursor cursor(bytes);
  const bool is_plain = cursor.varint() == 0;
  for (std::uint64_t last = 0; !cursor.at_end();) {
    const std::uint64_t value = cursor.varint();
    last += format::unzigzag(is_plain ? value : value >> 2);
    values.push_back({value_kinds[is_plain ? 0 : value % value_kinds.size()], static_cast<StackId>(last)});
  }
  return values;
}

}  // namespace cmt::collector
