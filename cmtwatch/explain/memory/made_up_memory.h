/// A memory for tests: the test writes its mappings, pages and files, and then lets the code under test look at them.
///
///     MadeUpMemory memory;
///     memory.map(0x7f0000000000, 64 << 10);                  // "rw-p", no page of it is resident
///     memory.write(0x7f0000000010, std::uint64_t{0x21});     // now its first page is
///     memory.set_state({0x7f0000004000, 0x7f0000005000}, PageState::swapped);
///     CHECK(find_something(memory) == ...);
///     CHECK(memory.faults() == 0);                           // a look would have faulted in no page
///
/// An AddressSpace keeps the states of pages and some of their bytes: write everything before the first look.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

class MadeUpMemory final : public AddressSpace {
 public:
  /// Adds a mapping that overlaps no other. Returns its range.
  Range map(std::uint64_t begin, std::uint64_t bytes, const std::string& name = "",
            const std::string& permissions = "rw-p") {
    assert(begin % page_bytes == 0 && bytes % page_bytes == 0 && bytes != 0);
    process::Mapping mapping;
    mapping.begin = begin;
    mapping.end = begin + bytes;
    mapping.name = name;
    mapping.permissions = permissions;
    const auto place = std::lower_bound(mappings_.begin(), mappings_.end(), begin,
                                        [](const process::Mapping& each, std::uint64_t at) { return each.end <= at; });
    assert(place == mappings_.end() || mapping.end <= place->begin);
    mappings_.insert(place, std::move(mapping));
    return {begin, begin + bytes};
  }

  /// Writes within mappings: the pages become resident. The sums of the mappings follow.
  void write(std::uint64_t address, const void* from, std::size_t bytes) {
    for (const auto* in = static_cast<const std::uint8_t*>(from); bytes != 0;) {
      const std::uint64_t in_page = address % page_bytes;
      const std::size_t here = std::min<std::size_t>(bytes, page_bytes - in_page);
      std::memcpy(resident_page(address - in_page).data() + in_page, in, here);
      address += here;
      in += here;
      bytes -= here;
    }
  }
  template <class T>
  void write(std::uint64_t address, const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    write(address, &value, sizeof value);
  }

  /// Sets the state of whole pages. A resident page without bytes has zeros.
  void set_state(Range range, PageState state) {
    for (std::uint64_t at = range.begin; at < range.end; at += page_bytes) {
      Page& page = pages_[at];
      count(at, page.state, -page_bytes);
      page.state = state;
      count(at, state, page_bytes);
    }
  }

  void add_thread(const Thread& thread) { threads_.push_back(thread); }
  void add_file(const std::string& path, std::string contents) { files_[path] = std::move(contents); }

  /// Pieces that would have faulted in a page, or lay outside of the memory.
  std::uint64_t faults() const { return faults_; }

  void read_pieces(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces) {
      if (read_piece(piece))
        read_bytes_ += piece.bytes;
      else
        ++faults_;
    }
  }

  bool read_file(const std::string& path, std::uint64_t offset, std::span<char> to) const override {
    const auto found = files_.find(path);
    return found != files_.end() && found->second.copy(to.data(), to.size(), offset) == to.size();
  }

  bool read_file(const std::string& path, const FilePieceVisitor& visit) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return false;
    visit(found->second);
    return true;
  }

 protected:
  std::vector<PageRun> runs_of(const process::Mapping& mapping) override {
    std::vector<PageRun> runs;
    for (auto page = pages_.lower_bound(mapping.begin); page != pages_.end() && page->first < mapping.end; ++page)
      add_run(runs, {{page->first, page->first + page_bytes}, page->second.state});
    return runs;
  }

 private:
  struct Page {
    PageState state = PageState::absent;
    std::array<std::uint8_t, page_bytes> bytes{};
  };

  // The sums of the mapping that has the page; `bytes` may be a negative number's residue.
  void count(std::uint64_t address, PageState state, std::uint64_t bytes) {
    const auto mapping = std::find_if(mappings_.begin(), mappings_.end(),
                                      [&](const auto& each) { return each.begin <= address && address < each.end; });
    assert(mapping != mappings_.end());
    if (state == PageState::swapped) mapping->swapped_bytes += bytes;
    if (state != PageState::resident) return;
    mapping->resident_bytes += bytes;
    mapping->anonymous_bytes += bytes;
  }

  std::array<std::uint8_t, page_bytes>& resident_page(std::uint64_t begin) {
    const auto found = pages_.find(begin);
    if (found == pages_.end() || found->second.state != PageState::resident)
      set_state({begin, begin + page_bytes}, PageState::resident);
    return pages_.at(begin).bytes;
  }

  bool read_piece(const Piece& piece) const {
    auto* to = static_cast<std::uint8_t*>(piece.to);
    std::uint64_t left = piece.bytes;
    for (std::uint64_t at = piece.address; left != 0;) {
      const auto page = pages_.find(page_begin(at));
      if (page == pages_.end() || page->second.state != PageState::resident) return false;
      const std::uint64_t here = std::min(left, page_bytes - at % page_bytes);
      std::memcpy(to, page->second.bytes.data() + at % page_bytes, here);
      at += here;
      to += here;
      left -= here;
    }
    return true;
  }

  std::map<std::uint64_t, Page> pages_;  // by address; those that no test named are absent
  std::map<std::string, std::string> files_;
  std::uint64_t faults_ = 0;
};

}  // namespace cmt::watch::explain
