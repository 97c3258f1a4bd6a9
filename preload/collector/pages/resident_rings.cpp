// Finds the rings in /proc/PID/maps by their inode, and counts their pages in /proc/PID/pagemap.
#include "preload/collector/pages/resident_rings.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace cmt::collector {

RingsMapping find_rings(const RingMemory& memory, std::uint64_t at) {
  struct stat status {};
  if (::fstat(memory.descriptor(), &status) != 0) return {};
  std::ifstream maps("/proc/" + std::to_string(memory.start_facts().process) + "/maps");
  RingsMapping found;
  for (std::string line; std::getline(maps, line) && found.address == 0; found.is_readable = true) {
    std::istringstream words(line);
    std::string addresses, access, offset, device, inode;
    words >> addresses >> access >> offset >> device >> inode;
    const bool begins_there = std::strtoull(offset.c_str(), nullptr, 16) == at;
    if (begins_there && inode == std::to_string(status.st_ino))
      found.address = std::strtoull(addresses.c_str(), nullptr, 16);
  }
  return found;
}

std::uint64_t ResidentRings::count_range(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t pages = 0;
  for (const PageRun& run : pages_->read(address, bytes).value_or(std::vector<PageRun>{})) pages += run.count;
  return pages * block_page_bytes;
}

std::uint64_t ResidentRings::count() {
  const StartFacts& facts = memory_.start_facts();
  if (!pages_) {
    pages_.emplace(static_cast<pid_t>(facts.process));
    address_ = find_rings(memory_).address;
    if (memory_.stack_share() != nullptr) stacks_ = find_rings(memory_, facts.stacks_at).address;
    if (stacks_ == 0) stacks_ = address_ + facts.stacks_at;
  }
  if (!pages_->is_open() || address_ == 0) return 0;
  std::uint64_t sum = count_range(address_, rings_control_bytes(facts.rings_limit));
  std::uint64_t begin = 0, end = 0;  // of rings side by side
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
    const RingMemory::Slots slots = memory_.slots_of(memory_.ring(i));
    if (slots.count == 0) continue;
    if (slots.at != end) {
      sum += count_range(address_ + begin, end - begin);
      begin = slots.at;
    }
    end = slots.at + slots.count * slot_bytes;
  }
  sum += count_range(address_ + begin, end - begin);
  if (memory_.stack_share() != nullptr) sum += count_range(stacks_, sizeof(StackShare));
  return sum;
}

}  // namespace cmt::collector
