#include "overhead/report.h"

namespace cmt::overhead {
namespace {

std::string row(const Sample& sample, std::uint64_t page_size) {
  std::string out = std::to_string(sample.event) + ",";
  out += (sample.time_ns == unknown ? "" : std::to_string(sample.time_ns)) + ",";
  for (const std::uint64_t number : {sample.live_bytes, sample.live_blocks, sample.pages, sample.free_pages,
                                     sample.span_pages(), sample.small_gap_bytes}) {
    out += std::to_string(number) + ",";
  }
  out += (sample.slop_bytes ? std::to_string(*sample.slop_bytes) : "") + ",";
  if (!sample.old) return out + ",,,,\n";
  const OldBlocks& old = *sample.old;
  for (const std::uint64_t number : {old.bytes, old.packed_bytes, old.pages, old.pinned})
    out += std::to_string(number) + ",";
  return out + std::to_string(old.separable(page_size)) + "\n";
}

}  // namespace

std::string to_csv(const Summary& summary) {
  std::string out =
      "event,time_ns,live_bytes,live_blocks,pages,free_pages,span_pages,small_gap_bytes,slop_bytes,old_bytes,old_"
      "packed_bytes,old_pages,"
      "pinned_pages,separable_pages\n";
  for (const Sample& sample : summary.samples) out += row(sample, summary.page_size);
  return out;
}

}  // namespace cmt::overhead
