// Finds the control blocks of threads by their marks: at the ends of stacks, and in small anonymous mappings.
#include "cmtwatch/explain/heap/thread_stacks.h"

#include <algorithm>
#include <array>
#include <map>

namespace cmt::watch::explain {
namespace {

/// struct pthread of glibc 2.17 to 2.43 on x86-64.
constexpr std::uint64_t block_alignment = 64, block_bytes = 0x900, self_at = 16, tid_at = 720;
constexpr std::uint64_t above_block_max = 1 << 20;  // the rest of the stack's mapping
constexpr std::uint64_t searched_at_end = 64 << 10, searched_above_pointer = 1 << 20, small_mapping = 256 << 10;

class Finder {
 public:
  explicit Finder(AddressSpace& memory) : memory_(memory) {}

  std::vector<LibcThread> find() {
    for (const Thread& thread : memory_.threads()) {
      if (thread.control_block != 0)
        take(thread.control_block);
      else
        search_above(thread.stack_pointer);
    }
    search_mappings();
    search_neighbours();
    std::vector<LibcThread> threads;
    for (const auto& [block, thread] : found_) threads.push_back(thread);
    return threads;
  }

 private:
  bool is_block(std::uint64_t address) {
    const auto tcb = memory_.read<std::uint64_t>(address);
    return tcb == address && memory_.read<std::uint64_t>(address + self_at) == address;
  }

  // The stack is described by three words side by side, `stackblock`, `stackblock_size` and `guardsize`. Their place in
  // struct pthread differs from version to version.
  Range stack_of(std::uint64_t block) {
    std::array<std::uint64_t, block_bytes / 8> words{};
    if (!memory_.read(block, words.data(), sizeof words)) return {};
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const std::uint64_t begin = words[i], bytes = words[i + 1], guard = words[i + 2];
      if (begin == 0 || begin % page_bytes != 0 || bytes % page_bytes != 0 || guard % page_bytes != 0) continue;
      if (begin >= block || block - begin >= bytes || begin + bytes - block > above_block_max || guard >= bytes)
        continue;
      return {begin + guard, begin + bytes};
    }
    return {};
  }

  bool take(std::uint64_t block) {
    if (found_.contains(block)) return true;
    if (block % 8 != 0 || !is_block(block)) return false;
    const auto tid = memory_.read<std::int32_t>(block + tid_at);
    if (!tid || *tid < 0) return false;
    found_[block] = {block, stack_of(block), *tid == 0};
    return true;
  }

  // Looks from the end of a range to its begin: a block is near the end.
  bool search(Range range) {
    std::array<std::uint64_t, page_bytes / 8> words;
    for (std::uint64_t page = page_end(range.end); page > page_begin(range.begin);) {
      page -= page_bytes;
      if (!memory_.read(page, words.data(), sizeof words)) continue;
      for (std::uint64_t at = page_bytes; at > 0;) {
        at -= block_alignment;
        if (words[at / 8] == page + at && words[(at + self_at) / 8] == page + at && take(page + at)) return true;
      }
    }
    return false;
  }

  void search_above(std::uint64_t stack_pointer) {
    const process::Mapping* const mapping = stack_pointer == 0 ? nullptr : memory_.find(stack_pointer);
    if (mapping == nullptr || mapping->name == "[stack]") return;
    const std::uint64_t end = std::min(mapping->end, stack_pointer + searched_above_pointer);
    for (std::uint64_t page = page_begin(stack_pointer); page < end; page += page_bytes) {
      if (memory_.page(page) == PageState::resident && search({page, page + page_bytes})) return;
    }
  }

  // A stack is a mapping of its own, after an inaccessible one. The first thread's block is in a small mapping, which
  // later ones that merge with it precede; in a static program, at the begin of the heap.
  void search_mappings() {
    for (const process::Mapping& mapping : memory_.mappings()) {
      if (!mapping.permissions.starts_with("rw-p") || mapping.name.starts_with("/")) continue;
      const std::uint64_t bytes = std::min(searched_at_end, mapping.end - mapping.begin);
      search({mapping.end - bytes, mapping.end});
      if (mapping.name == "[heap]") search({mapping.begin, mapping.begin + bytes});
    }
    for (const process::Mapping& mapping : memory_.mappings()) {
      if (alive() >= memory_.threads().size()) return;
      const std::uint64_t bytes = mapping.end - mapping.begin;
      if (mapping.permissions.starts_with("rw-p") && !mapping.name.starts_with("/") && bytes <= small_mapping)
        search({mapping.begin, mapping.end});
    }
  }

  std::size_t alive() const {
    return static_cast<std::size_t>(
        std::count_if(found_.begin(), found_.end(), [](const auto& each) { return !each.second.has_ended; }));
  }

  // Stacks of glibc 2.42 and later have no inaccessible mapping, and lie side by side.
  void search_neighbours() {
    std::vector<LibcThread> known;
    for (const auto& [block, thread] : found_) known.push_back(thread);
    constexpr std::size_t threads_max = 1 << 16;
    while (!known.empty() && found_.size() < threads_max) {
      const LibcThread thread = known.back();
      known.pop_back();
      if (thread.stack.end == 0) continue;
      for (const std::uint64_t distance : {thread.stack.bytes(), thread.stack.bytes() + page_bytes}) {
        for (const std::uint64_t at : {thread.control_block - distance, thread.control_block + distance}) {
          if (!found_.contains(at) && take(at)) known.push_back(found_[at]);
        }
      }
    }
  }

  AddressSpace& memory_;
  std::map<std::uint64_t, LibcThread> found_;
};

}  // namespace

std::vector<LibcThread> find_libc_threads(AddressSpace& memory) { return Finder(memory).find(); }

}  // namespace cmt::watch::explain
