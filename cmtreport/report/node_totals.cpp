// Packs and unpacks the figures of nodes in the form that node_totals.h describes.

#include "cmtreport/report/node_totals.h"

#include <cassert>

namespace cmt::report {
namespace {

constexpr std::size_t figures = FoldFigures().size(), numbers = figures + 2;

}  // namespace

void NodeTotals::add(std::size_t moment, const SparseMeasures& more) {
  assert(moment >= moment_);
  if (moment != moment_) changed_ = 0;
  moment_ = moment;
  more.add_to(sum);
  changes += static_cast<std::uint64_t>(std::popcount(more.present & ~changed_));
  changed_ |= more.present;
}

void TotalsByNode::append(CallId node, const NodeTotals& totals) {
  assert(bytes_.empty() || node > last_);
  std::array<std::uint64_t, numbers> all{};
  for (std::size_t i = 0; i < figures; ++i) all.at(i) = totals.figure(i);
  all[figures] = totals.peak_blocks;
  all[figures + 1] = totals.changes;
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < numbers; ++i) present |= std::uint64_t{all.at(i) != 0} << i;
  std::array<char, (numbers + 1) * format::varint_max> packed_numbers;
  char* end = format::put_varint(packed_numbers.data(), present);
  for (const std::uint64_t each : all) {
    if (each != 0) end = format::put_varint(end, each);
  }
  std::array<char, format::varint_max + 1> head;
  assert(end - packed_numbers.data() < 256);  // one byte holds the length
  char* head_end = format::put_varint(head.data(), index_of(node) - index_of(last_));
  *head_end++ = static_cast<char>(end - packed_numbers.data());
  bytes_.append(head.data(), head_end);
  bytes_.append(packed_numbers.data(), end);
  last_ = node;
}

NodeTotals TotalsByNode::unpacked(const char* at) {
  NodeTotals totals;
  for (std::uint64_t present = format::take_own_varint(at); present != 0; present &= present - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(present));
    assert(i < numbers);
    const std::uint64_t number = format::take_own_varint(at);
    if (i + 1 < figures)
      totals.sum[judged_measures.at(i)] = number;
    else
      (i + 1 == figures ? totals.peak_bytes : i == figures ? totals.peak_blocks : totals.changes) = number;
  }
  return totals;
}

}  // namespace cmt::report
