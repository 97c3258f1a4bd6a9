// Asks one reader after the other. A page that one has taken is not shown to the next.
#include "cmtwatch/explain/owners/owners.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <utility>

#include "cmtwatch/explain/owners/readers.h"

namespace cmt::watch::explain {
namespace {

// By the proof that each has: whole chains first, guesses last.
constexpr Reader certain_readers[] = {read_mimalloc_segments, read_zend_chunks, read_python_pools};
constexpr Reader guessing_readers[] = {find_v8_pages, find_ruby_pages, find_java_heap, find_java_code, find_go_heap};

// The kernel's name of a mapping that its program named with prctl(PR_SET_VMA_ANON_NAME).
std::string_view given_name(const process::Mapping& mapping) {
  std::string_view name = mapping.name;
  for (const std::string_view begin : {"[anon:", "[anon_shmem:"}) {
    if (name.starts_with(begin) && name.ends_with("]"))
      return name.substr(begin.size(), name.size() - begin.size() - 1);
  }
  return {};
}

// By name.
std::map<std::string, OwnedMemory> read_names(const Unclaimed& unclaimed) {
  std::map<std::string, OwnedMemory> named;
  for (const Range& range : unclaimed.ranges()) {
    const process::Mapping* const mapping = unclaimed.memory().find(range.begin);
    if (mapping == nullptr || given_name(*mapping).empty()) continue;
    OwnedMemory& owned = named[std::string(given_name(*mapping))];
    owned.ranges.push_back(range);
  }
  for (auto& [name, owned] : named) {
    owned.owner = name;
    owned.remark = "the program gave the kernel this name";
  }
  return named;
}

void take(Unclaimed& unclaimed, OwnedMemory found, std::vector<OwnedMemory>& owners) {
  found.ranges = unclaimed.take(std::move(found.ranges));
  if (!found.ranges.empty()) owners.push_back(std::move(found));
}

}  // namespace

Unclaimed::Unclaimed(AddressSpace& memory, const std::vector<Range>& ranges) : memory_(memory), ranges_(ranges) {
  std::erase_if(ranges_, [](const Range& range) { return range.begin >= range.end; });
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  assert(std::adjacent_find(ranges_.begin(), ranges_.end(),
                            [](const Range& a, const Range& b) { return a.end > b.begin; }) == ranges_.end());
}

bool Unclaimed::contains(std::uint64_t address) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](std::uint64_t at, const Range& range) { return at < range.end; });
  return after != ranges_.end() && after->begin <= address;
}

std::vector<Range> Unclaimed::take(std::vector<Range> wanted) {
  std::sort(wanted.begin(), wanted.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> taken, left;
  auto next = wanted.cbegin();
  for (const Range& range : ranges_) {
    std::uint64_t at = range.begin;
    while (next != wanted.cend() && next->end <= at) ++next;
    for (auto each = next; each != wanted.cend() && each->begin < range.end; ++each) {
      const Range part{std::max(at, page_begin(each->begin)), std::min(range.end, page_end(each->end))};
      if (part.begin >= part.end) continue;
      if (at < part.begin) left.push_back({at, part.begin});
      if (!taken.empty() && taken.back().end == part.begin && at == part.begin && at != range.begin)
        taken.back().end = part.end;
      else
        taken.push_back(part);
      at = part.end;
    }
    if (at < range.end) left.push_back({at, range.end});
  }
  ranges_ = std::move(left);
  return taken;
}

void Unclaimed::each_head(std::uint64_t step, std::size_t bytes, const UseHead& use) const {
  assert(step % page_bytes == 0 && bytes <= page_bytes);
  constexpr std::size_t heads_max = 1000;  // read with one system call
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint8_t> heads;
  std::vector<AddressSpace::Piece> pieces;
  const auto use_all = [&] {
    heads.assign(addresses.size() * bytes, 0);
    pieces.clear();
    for (std::size_t i = 0; i < addresses.size(); ++i)
      pieces.push_back({addresses[i], heads.data() + i * bytes, bytes});
    memory_.read_pieces(pieces);
    for (std::size_t i = 0; i < addresses.size(); ++i)
      use(addresses[i], std::span<const std::uint8_t>(heads).subspan(i * bytes, bytes));
    addresses.clear();
  };
  for (const Range& range : ranges_) {
    // Near the end of all addresses, where the kernel has a page of its own, the next step is 0.
    const auto next_step = [&](std::uint64_t at) { return (at + step - 1) / step * step; };
    std::uint64_t at = next_step(range.begin), before = range.begin;
    while (before <= at && at < range.end) {
      const std::uint64_t resident = memory_.next_resident({at, range.end});
      if (resident == at) {
        addresses.push_back(at);
        if (addresses.size() == heads_max) use_all();
      }
      before = at + 1;
      at = next_step(std::max(resident, before));
    }
  }
  use_all();
}

bool Unclaimed::has_file(std::string_view part_of_name) const {
  return std::any_of(memory_.mappings().begin(), memory_.mappings().end(), [&](const process::Mapping& mapping) {
    return mapping.name.starts_with('/') && mapping.name.find(part_of_name) != std::string::npos;
  });
}

std::vector<OwnedMemory> find_owners(AddressSpace& memory, const std::vector<Range>& unknown) {
  Unclaimed unclaimed(memory, unknown);
  std::vector<OwnedMemory> owners;
  for (const Reader reader : certain_readers) {
    if (auto found = reader(unclaimed)) take(unclaimed, std::move(*found), owners);
  }
  for (auto& [name, found] : read_names(unclaimed)) take(unclaimed, std::move(found), owners);
  for (const Reader reader : guessing_readers) {
    if (auto found = reader(unclaimed)) take(unclaimed, std::move(*found), owners);
  }
  return owners;
}

}  // namespace cmt::watch::explain
