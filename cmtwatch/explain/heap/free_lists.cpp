// Follows the lists of fastbins and of threads' caches.
#include "cmtwatch/explain/heap/free_lists.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t fast_list_max = 10'000'000, followed_max = 20'000'000, cache_list_max = 1 << 17,
                        counted_max = 1024;
// Thread-local variables are below the control block, and the program's are nearest. Where these are large, malloc's
// are far, and only some threads are searched so far.
constexpr std::uint64_t static_tls_bytes = 16384, large_tls_bytes = 4 << 20;
constexpr std::size_t threads_searched_far = 8;

/// Notices that a list goes in a circle: each address is compared with one that came before, which is chosen anew after
/// 1, 2, 4, ... addresses.
class CircleMark {
 public:
  bool closes(std::uint64_t address) {
    if (address == mark_) return true;
    if (++since_ == distance_) {
      mark_ = address;
      since_ = 0;
      distance_ *= 2;
    }
    return false;
  }

 private:
  std::uint64_t mark_ = 0, since_ = 0, distance_ = 1;
};

class ListReader {
 public:
  ListReader(AddressSpace& memory, const GlibcMalloc& malloc) : memory_(memory), malloc_(malloc) {}

  FreeLists read(const std::vector<LibcThread>& threads) {
    for (const Arena& arena : malloc_.arenas) {
      for (std::size_t i = 0; i < arena.fast_chunks.size(); ++i) follow_fast(arena, i);
    }
    read_caches(threads);
    for (auto* chunks : {&lists_.fast, &lists_.cached, &lists_.caches}) {
      std::sort(chunks->begin(), chunks->end());
      chunks->erase(std::unique(chunks->begin(), chunks->end()), chunks->end());
    }
    return std::move(lists_);
  }

 private:
  // A thread that runs takes a chunk while its link is read: then the list is followed again from its head. Only the
  // chunks near the head change so quickly. If the list breaks each time, the longest part is kept.
  void follow_fast(const Arena& arena, std::size_t bin) {
    constexpr int tries_max = 8;
    auto& fast = lists_.fast;
    const auto known = static_cast<std::ptrdiff_t>(fast.size());
    const auto read = [this](std::uint64_t address, std::uint64_t& word) {
      return memory_.read(address, &word, sizeof word);
    };
    if (follow(arena.fast_chunks[bin], read)) return;
    ++lists_.broken;
    for (int tries = 0; tries < tries_max; ++tries) {
      const auto tried = static_cast<std::ptrdiff_t>(fast.size());
      std::uint64_t head = 0;
      const auto read_again = [this](std::uint64_t address, std::uint64_t& word) { return read_now(address, word); };
      const std::uint64_t heads = arena.address + malloc_.layout.bins - fastbins_before_bins;
      const bool is_whole = read_now(heads + 8 * bin, head) && follow(head, read_again);
      const auto end = static_cast<std::ptrdiff_t>(fast.size());
      const bool is_better = is_whole || end - tried > tried - known;
      fast.erase(fast.begin() + (is_better ? known : tried), is_better ? fast.begin() + tried : fast.end());
      if (is_whole) return;
    }
  }

  // Reads what memory holds now, and not a page that was kept.
  bool read_now(std::uint64_t address, std::uint64_t& word) {
    if (memory_.page(address) != PageState::resident) return false;
    const std::array<AddressSpace::Piece, 1> pieces{{{address, &word, sizeof word}}};
    memory_.read_pieces(pieces);
    return true;
  }

  // `chunk` is the first of a list. The link is the first word of a chunk's block. Returns false where the list breaks.
  template <class Read>
  bool follow(std::uint64_t chunk, const Read& read) {
    CircleMark circle;
    for (std::uint64_t count = 0; chunk != 0; ++count) {
      std::uint64_t link = 0;
      if (count == fast_list_max || circle.closes(chunk) || ++followed_ > followed_max || chunk % 16 != 0 ||
          !read(chunk + chunk_head_bytes, link))
        return false;
      lists_.fast.push_back(chunk);
      chunk = malloc_.link(chunk + chunk_head_bytes, link);
    }
    return true;
  }

  // Caches link blocks, not chunks.
  void follow_cache(std::uint64_t block) {
    CircleMark circle;
    for (std::uint64_t count = 0; block != 0; ++count) {
      const auto link = block % 16 == 0 ? memory_.read<std::uint64_t>(block) : std::nullopt;
      if (count == cache_list_max || circle.closes(block) || ++followed_ > followed_max || !link) {
        ++lists_.broken;
        return;
      }
      lists_.cached.push_back(block - chunk_head_bytes);
      block = malloc_.link(block, *link);
    }
  }

  // A chunk of the right size whose entries can be blocks.
  bool is_cache(std::uint64_t block) {
    if (block < page_bytes || block % 16 != 0) return false;
    const auto size = memory_.read<std::uint64_t>(block - 8);
    if (!size || chunk_bytes(*size) != malloc_.layout.cache_chunk) return false;
    for (std::uint64_t i = 0; i < malloc_.layout.cache_bins; ++i) {
      const auto entry = memory_.read<std::uint64_t>(block + malloc_.layout.cache_entries + 8 * i);
      if (!entry || *entry % 16 != 0 || (*entry != 0 && memory_.find(*entry) == nullptr)) return false;
    }
    return true;
  }

  // The pointer to a thread's cache is at the same distance below the control block of each thread. So the distance is
  // the one at which most threads have a pointer to a chunk of that size.
  std::optional<std::uint64_t> find_distance(std::span<const LibcThread> threads, std::uint64_t most) {
    std::map<std::uint64_t, std::size_t> votes;
    std::array<std::uint64_t, page_bytes / 8> words;
    for (const LibcThread& thread : threads) {
      for (std::uint64_t end = thread.control_block; end + most > thread.control_block; end = page_begin(end - 8)) {
        const std::uint64_t begin = page_begin(end - 8);
        if (memory_.page(begin) != PageState::resident) continue;
        if (!memory_.read(begin, words.data(), end - begin)) break;
        for (std::uint64_t at = begin; at < end; at += 8) {
          if (is_cache(words[(at - begin) / 8])) ++votes[thread.control_block - at];
        }
      }
    }
    const auto best =
        std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return best == votes.end() ? std::nullopt : std::optional(best->first);
  }

  // A count for each list, before the lists: of 16 bits, before glibc 2.30 of 8. From 2.42 on they count what is still
  // to come.
  void count_blocks(std::uint64_t cache) {
    constexpr std::uint64_t bins = 64, least_chunk = 32;
    if (malloc_.layout.cache_bins != bins) return;
    const bool is_wide = malloc_.layout.cache_entries == 2 * bins;
    for (std::uint64_t i = 0; i < bins; ++i) {
      const std::uint64_t count = is_wide ? memory_.read<std::uint16_t>(cache + 2 * i).value_or(0)
                                          : memory_.read<std::uint8_t>(cache + i).value_or(0);
      if (count > counted_max) continue;  // damage
      lists_.counted_blocks += count;
      lists_.counted_bytes += count * (least_chunk + chunk_alignment * i);
    }
  }

  void read_caches(const std::vector<LibcThread>& threads) {
    const GlibcLayout& layout = malloc_.layout;
    if (layout.cache_chunk == 0) return;
    auto distance = find_distance(threads, static_tls_bytes);
    const std::span<const LibcThread> some(threads.data(), std::min(threads.size(), threads_searched_far));
    if (!distance) distance = find_distance(some, large_tls_bytes);
    lists_.has_caches = distance.has_value();
    if (!distance) return;
    for (const LibcThread& thread : threads) {
      const auto cache = memory_.read<std::uint64_t>(thread.control_block - *distance);
      if (!cache || !is_cache(*cache)) continue;
      lists_.caches.push_back(*cache - chunk_head_bytes);
      count_blocks(*cache);
      for (std::uint64_t i = 0; i < layout.cache_bins; ++i)
        follow_cache(memory_.read<std::uint64_t>(*cache + layout.cache_entries + 8 * i).value_or(0));
    }
  }

  AddressSpace& memory_;
  const GlibcMalloc& malloc_;
  FreeLists lists_;
  std::uint64_t followed_ = 0;
};

}  // namespace

FreeLists read_free_lists(AddressSpace& memory, const GlibcMalloc& malloc, const std::vector<LibcThread>& threads) {
  return ListReader(memory, malloc).read(threads);
}

}  // namespace cmt::watch::explain
