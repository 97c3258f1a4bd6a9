// Checks the holders of random heaps against counts page by page.
#include "analysis/held_pages/page_holders.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

namespace cmt::analysis {
namespace {

constexpr int small_page_shift = 12;
constexpr std::uint64_t small_page_size = 1 << small_page_shift;

/// Blocks at one moment, each with the stack that made it: a chain of functions named "a" to "e".
struct Heap {
  struct Block {
    heap::PlacedBlock placed;
    StackId stack = 0;
  };

  std::vector<Block> blocks;  ///< by rising address
  StackTable stacks;
  std::map<StackId, std::string> chains;  ///< the outermost function first
  std::uint64_t old_before = 500;

  PageUses uses() const {
    heap::AddressIndex live;
    std::map<std::uint64_t, StackId> stack_of;
    for (const Block& block : blocks) {
      heap::Neighbourhood place{block.placed, {}, {}};
      live.insert(place);
      stack_of[block.placed.address] = block.stack;
    }
    return find_page_uses(live, small_page_shift, old_before,
                          [&](const heap::PlacedBlock& block) { return stack_of.at(block.address); });
  }
};

StackId random_stack(Heap& heap, std::mt19937_64& random) {
  StackId at = 0;
  std::string chain;
  for (std::uint64_t depth = random() % 5; depth != 0; --depth) {
    const auto function = static_cast<FrameId>(random() % 5);
    at = heap.stacks.add_node({at, function + 1});
    chain += static_cast<char>('a' + function);
  }
  heap.chains[at] = chain;
  return at;
}

Heap random_heap(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Heap heap;
  Module app;
  app.path = "/opt/app";
  const ModuleId module = heap.stacks.add_module(app);
  for (char function = 'a'; function <= 'e'; ++function) {
    const FrameId frame = heap.stacks.add_frame({module, 0x1000u + static_cast<unsigned char>(function), false});
    const FrameName name{.function = std::string_view(&function, 1), .file = {}};
    heap.stacks.set_names(frame, {&name, 1});
  }
  const std::uint64_t gap_max = random() % 2 == 0 ? 40 : 3000, size_max = random() % 3 == 0 ? 20'000 : 200;
  std::uint64_t address = 0x10000;
  for (cmt::Tag tag = 1; tag <= 300; ++tag) {
    address += random() % gap_max;
    const std::uint64_t size = random() % size_max;
    heap.blocks.push_back({{.address = address, .size = size, .born = random() % 1000, .tag = tag, .slop = 0},
                           random_stack(heap, random)});
    address = heap.blocks.back().placed.last() + 1;
  }
  return heap;
}

/// The same figures of the blocks that `has` chooses, page by page.
template <class Has>
PageUse counted_one_by_one(const Heap& heap, Has has) {
  const auto is_old = [&](const heap::PlacedBlock& block) { return block.born < heap.old_before; };
  PageUse use;
  std::map<std::uint64_t, std::vector<std::size_t>> pages;
  for (std::size_t i = 0; i < heap.blocks.size(); ++i) {
    const heap::PlacedBlock& block = heap.blocks[i].placed;
    for (std::uint64_t page = block.address / small_page_size; page <= block.last() / small_page_size; ++page)
      pages[page].push_back(i);
    if (!has(heap.blocks[i])) continue;
    ++use.blocks;
    use.live_bytes += block.size;
    use.old_blocks += is_old(block);
    use.old_bytes += is_old(block) ? block.size : 0;
  }
  for (const auto& [page, blocks] : pages) {
    std::uint64_t used = 0, old_used = 0, old_count = 0;
    bool is_sole = true;
    for (const std::size_t i : blocks) {
      const heap::PlacedBlock& block = heap.blocks[i].placed;
      const std::uint64_t begin = std::max(block.address, page * small_page_size);
      const std::uint64_t end = std::min(block.address + block.size, (page + 1) * small_page_size);
      used += end - begin;
      is_sole = is_sole && has(heap.blocks[i]);
      if (!is_old(block)) continue;
      ++old_count;
      old_used += end - begin;
      if (i + 1 == heap.blocks.size() || block.last() / small_page_size != page) continue;
      const std::uint64_t gap = heap.blocks[i + 1].placed.address - block.address - block.size;
      if (gap <= 31) old_used += gap;
    }
    if (is_sole) use.sole_bytes += small_page_size;
    std::uint64_t rank = 0, old_rank = 0;
    for (const std::size_t i : blocks) {
      const heap::PlacedBlock& block = heap.blocks[i].placed;
      const auto part = [](std::uint64_t whole, std::uint64_t count, std::uint64_t place) {
        return (whole + count - 1 - place) / count;
      };
      const std::uint64_t place = rank++, old_place = is_old(block) ? old_rank++ : 0;
      if (!has(heap.blocks[i])) continue;
      use.page_bytes += part(small_page_size, blocks.size(), place);
      use.unused_bytes += part(small_page_size - used, blocks.size(), place);
      if (!is_old(block)) continue;
      use.old_page_bytes += part(small_page_size, old_count, old_place);
      if (old_used <= small_page_size)
        use.separable_bytes += static_cast<std::int64_t>(part(small_page_size - old_used, old_count, old_place));
      else
        use.separable_bytes -= static_cast<std::int64_t>(part(old_used - small_page_size, old_count, old_place));
      use.pinned_pages += blocks.size() == 1 && block.size <= small_page_size / 8;
    }
  }
  return use;
}

std::string own_function(const std::string& chain) {
  return chain.empty() ? "[unknown]" : chain.substr(chain.size() - 1);
}

TEST_CASE("page holders: figures by function are what counting page by page gives") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Heap heap = random_heap(seed);
    const PageHolders report = find_page_holders(heap.stacks, heap.uses(), {});
    CHECK(report.total == counted_one_by_one(heap, [](const auto&) { return true; }));
    CHECK(report.holders.size() == 6);
    PageUse sum;
    for (const PageHolder& each : report.holders) {
      CAPTURE(each.name);
      const auto chain_of = [&](const Heap::Block& block) { return heap.chains.at(block.stack); };
      const auto is_own = [&](const Heap::Block& block) { return own_function(chain_of(block)) == each.name; };
      const auto is_in = [&](const Heap::Block& block) {
        return each.name == "[unknown]" ? is_own(block) : chain_of(block).find(each.name) != std::string::npos;
      };
      CHECK(each.self == counted_one_by_one(heap, is_own));
      CHECK(each.inclusive == counted_one_by_one(heap, is_in));
      sum += each.self;
    }
    sum.sole_bytes = report.total.sole_bytes;
    CHECK(sum == report.total);
  }
}

TEST_CASE("page holders: stacks that are left out have their share of pages all the same") {
  const Heap heap = random_heap(7);
  PageUses uses = heap.uses();
  std::erase_if(uses.entries,
                [&](const auto& entry) { return heap.chains.at(entry.key).find('a') == std::string::npos; });
  const auto is_in = [&](const Heap::Block& block) {
    return heap.chains.at(block.stack).find('a') != std::string::npos;
  };
  CHECK(find_page_holders(heap.stacks, uses, {}).total == counted_one_by_one(heap, is_in));
}

TEST_CASE("page holders: callers add up to what the function holds, but are not told what they hold alone") {
  const Heap heap = random_heap(3);
  const PageHolders report =
      find_page_holders(heap.stacks, heap.uses(), {.by = By::caller, .metric = PageMetric::pages});
  for (const PageHolder& each : report.holders) {
    PageUse sum;
    for (const CallerOf<PageUse>& caller : each.callers) {
      CHECK(caller.use.sole_bytes == unknown);
      sum += caller.use;
    }
    CHECK(sum.page_bytes <= each.self.page_bytes);
    const auto has_no_caller = [&](const Heap::Block& block) { return heap.chains.at(block.stack) == each.name; };
    const PageUse outermost = counted_one_by_one(heap, has_no_caller);
    if (each.name != "[unknown]") CHECK(sum.page_bytes + outermost.page_bytes == each.self.page_bytes);
  }
}

TEST_CASE("page holders: a full page of old blocks has nothing to separate, and the gap behind it takes from the sum") {
  Heap heap;
  heap.stacks.add_frame({0, 0x10, false});
  const StackId stack = heap.stacks.add_node({0, 1});
  heap.blocks.push_back({{.address = 0x10000, .size = 4096, .born = 0, .tag = 1, .slop = 0}, stack});
  heap.blocks.push_back({{.address = 0x11010, .size = 96, .born = 0, .tag = 2, .slop = 0}, stack});
  const PageUses uses = heap.uses();
  CHECK(uses.entries.front().use.separable_bytes == -16 + 4000);
  CHECK(uses.entries.front().use.sole_bytes == 2 * small_page_size);
  CHECK(uses.shared_pages.empty());
}

}  // namespace
}  // namespace cmt::analysis
