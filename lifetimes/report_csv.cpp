#include "lifetimes/report.h"

namespace cmt::lifetimes {
namespace {

void append(std::string& out, const std::optional<std::uint64_t>& number) {
  if (number) out += std::to_string(*number);
  out += ',';
}

std::string row(const Summary& summary, std::size_t size_class) {
  const SizeSummary& size = summary.sizes[size_class];
  std::string out;
  for (const std::uint64_t number :
       {SizeClasses::low(size_class), SizeClasses::high(size_class), size.allocated.blocks, size.allocated.bytes,
        size.ended, size.short_lived, size.temporary, size.other_thread}) {
    append(out, number);
  }
  for (const double share : {0.5, 0.9, 0.99}) append(out, summary.quantile(size_class, share));
  append(out, size.ended == 0 ? std::optional<std::uint64_t>() : size.lifetime_max);
  append(out, size.leaked.blocks);
  return out + std::to_string(size.leaked.bytes) + '\n';
}

}  // namespace

std::string to_csv(const Summary& summary) {
  const std::string unit =
      summary.clock == heap::Clock::Unit::time ? "ns" : std::string(heap::Clock::name(summary.clock));
  std::string out = "size_bytes_min,size_bytes_max,allocated_blocks,allocated_bytes,ended_blocks,short_lived_blocks,";
  out += "temporary_blocks,other_thread_blocks,";
  for (const char* const name : {"p50", "p90", "p99", "max"}) out += "lifetime_" + unit + "_" + name + ",";
  out += "leaked_blocks,leaked_bytes\n";
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    if (summary.sizes[i].allocated.blocks != 0) out += row(summary, i);
  }
  return out;
}

}  // namespace cmt::lifetimes
