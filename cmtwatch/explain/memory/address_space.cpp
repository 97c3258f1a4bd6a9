// Finds mappings and pages, and keeps pages that lists of free blocks lead to again and again.
#include "cmtwatch/explain/memory/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <new>
#include <numeric>

namespace cmt::watch::explain {

namespace {
constexpr std::size_t pages_kept = 4096, kept_bytes = pages_kept * page_bytes;
}  // namespace

// The addresses are apart from the bytes, so that only pages that are kept become resident here: a small process costs
// little, again and again. For a large one, which may be stopped meanwhile, huge pages spare a page fault for each.
class AddressSpace::KeptPages {
 public:
  explicit KeptPages(std::uint64_t resident_bytes) {
    if (resident_bytes > 2 * kept_bytes) ::madvise(bytes_.get(), kept_bytes, MADV_HUGEPAGE);
  }

  std::uint64_t& page(std::size_t place) { return pages_[place]; }
  std::uint8_t* bytes(std::size_t place) { return bytes_.get() + place * page_bytes; }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const { ::operator delete(bytes, std::align_val_t(huge_page_bytes)); }
  };

  std::array<std::uint64_t, pages_kept> pages_{};  // their addresses; 0: none
  std::unique_ptr<std::uint8_t, Free> bytes_{
      static_cast<std::uint8_t*>(::operator new(kept_bytes, std::align_val_t(huge_page_bytes)))};
};

AddressSpace::AddressSpace() = default;
AddressSpace::~AddressSpace() = default;

const process::Mapping* AddressSpace::find(std::uint64_t address) const {
  if (last_found_ < mappings_.size() && mappings_[last_found_].begin <= address && address < mappings_[last_found_].end)
    return &mappings_[last_found_];
  const auto after = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                      [](std::uint64_t at, const process::Mapping& each) { return at < each.end; });
  if (after == mappings_.end() || address < after->begin) return nullptr;
  last_found_ = static_cast<std::size_t>(after - mappings_.begin());
  return &*after;
}

bool names_shared_memory(std::string_view name) {
  return name.starts_with("/memfd:") || name.starts_with("/dev/shm/") || name.starts_with("/SYSV") ||
         name.starts_with("/dev/zero");
}

void add_run(std::vector<PageRun>& runs, const PageRun& next) {
  if (next.state == PageState::absent || next.range.begin >= next.range.end) return;
  if (!runs.empty() && runs.back().state == next.state && runs.back().range.end == next.range.begin)
    runs.back().range.end = next.range.end;
  else
    runs.push_back(next);
}

AddressSpace::Runs& AddressSpace::runs(const process::Mapping& mapping) {
  assert(&mapping >= mappings_.data() && &mapping < mappings_.data() + mappings_.size());
  runs_.resize(mappings_.size());
  Runs& known = runs_[static_cast<std::size_t>(&mapping - mappings_.data())];
  if (!known.is_known) known = {true, runs_of(mapping)};
  return known;
}

const PageRun* AddressSpace::run_after(std::uint64_t address, const process::Mapping& mapping) {
  Runs& known = runs(mapping);
  const auto is_wanted = [&](std::size_t i) {
    return known.runs[i].range.end > address && (i == 0 || known.runs[i - 1].range.end <= address);
  };
  if (known.last_found >= known.runs.size() || !is_wanted(known.last_found)) {
    const auto after = std::upper_bound(known.runs.begin(), known.runs.end(), address,
                                        [](std::uint64_t at, const PageRun& run) { return at < run.range.end; });
    known.last_found = static_cast<std::size_t>(after - known.runs.begin());
  }
  return known.last_found == known.runs.size() ? nullptr : &known.runs[known.last_found];
}

PageState AddressSpace::page(std::uint64_t address) {
  const process::Mapping* const mapping = find(address);
  const PageRun* const run = mapping == nullptr ? nullptr : run_after(address, *mapping);
  return run != nullptr && run->range.contains(address) ? run->state : PageState::absent;
}

template <class Use>
void AddressSpace::each_run(Range range, Use use) {
  if (range.begin >= range.end) return;
  const auto first = std::upper_bound(mappings_.begin(), mappings_.end(), range.begin,
                                      [](std::uint64_t at, const process::Mapping& each) { return at < each.end; });
  for (auto mapping = first; mapping != mappings_.end() && mapping->begin < range.end; ++mapping) {
    const auto& all = runs(*mapping).runs;
    const PageRun* const begin = run_after(range.begin, *mapping);
    if (begin == nullptr) continue;
    for (auto run = all.begin() + (begin - all.data()); run != all.end() && run->range.begin < range.end; ++run) {
      if (!use(PageRun{{std::max(range.begin, run->range.begin), std::min(range.end, run->range.end)}, run->state}))
        return;
    }
  }
}

std::uint64_t AddressSpace::next(Range range, PageState state) {
  std::uint64_t found = range.end;
  each_run({page_end(range.begin), range.end}, [&](const PageRun& run) {
    if (run.state != state) return true;
    found = run.range.begin;
    return false;
  });
  return found;
}

std::uint64_t AddressSpace::count(Range range, PageState state) {
  std::uint64_t bytes = 0;
  range = {page_end(range.begin), page_begin(range.end)};
  each_run(range, [&](const PageRun& run) {
    if (run.state == state) bytes += run.range.bytes();
    return true;
  });
  return bytes;
}

std::uint64_t AddressSpace::resident_bytes(Range range) { return count(range, PageState::resident); }
std::uint64_t AddressSpace::swapped_bytes(Range range) { return count(range, PageState::swapped); }

const std::uint8_t* AddressSpace::keep(std::uint64_t page) {
  if (!kept_) {
    const auto add = [](std::uint64_t sum, const process::Mapping& each) { return sum + each.resident_bytes; };
    kept_ = std::make_unique<KeptPages>(std::accumulate(mappings_.begin(), mappings_.end(), std::uint64_t{0}, add));
  }
  const std::size_t place = page / page_bytes % pages_kept;
  std::uint64_t& kept = kept_->page(place);
  std::uint8_t* const bytes = kept_->bytes(place);
  if (kept == page) return bytes;
  if (this->page(page) != PageState::resident) return nullptr;
  kept = 0;
  const std::uint64_t before = read_bytes_;
  const Piece whole{page, bytes, page_bytes};
  read_pieces({&whole, 1});
  if (read_bytes_ != before + page_bytes) return nullptr;
  kept = page;
  return bytes;
}

bool AddressSpace::read(std::uint64_t address, void* to, std::size_t bytes) {
  auto* out = static_cast<std::uint8_t*>(to);
  while (bytes != 0) {
    const std::uint64_t in_page = address % page_bytes;
    const std::size_t here = std::min<std::size_t>(bytes, page_bytes - in_page);
    const std::uint8_t* const kept = keep(address - in_page);
    if (kept == nullptr) return false;
    std::memcpy(out, kept + in_page, here);
    address += here;
    out += here;
    bytes -= here;
  }
  return true;
}

bool AddressSpace::read_pages(Range range, std::uint8_t* to) {
  assert(range.begin % page_bytes == 0 && range.end % page_bytes == 0 && range.begin <= range.end);
  std::vector<Piece> pieces;
  std::uint64_t wanted = 0, done = range.begin;
  const auto clear_up_to = [&](std::uint64_t end) { std::memset(to + (done - range.begin), 0, end - done); };
  each_run(range, [&](const PageRun& run) {
    if (run.state != PageState::resident) return true;
    clear_up_to(run.range.begin);
    pieces.push_back({run.range.begin, to + (run.range.begin - range.begin), run.range.bytes()});
    wanted += run.range.bytes();
    done = run.range.end;
    return true;
  });
  clear_up_to(range.end);
  const std::uint64_t before = read_bytes_;
  read_pieces(pieces);
  return read_bytes_ == before + wanted;
}

bool AddressSpace::read_file(int fd, const FilePieceVisitor& visit) {
  constexpr std::size_t overlap = 256;
  std::array<char, 64 << 10> piece;
  std::size_t kept = 0;
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, piece.data() + kept, piece.size() - kept, at);
    if (got <= 0) return got == 0;
    at += got;
    const std::size_t bytes = kept + static_cast<std::size_t>(got);
    if (!visit({piece.data(), bytes})) return true;
    kept = std::min(bytes, overlap);
    std::memmove(piece.data(), piece.data() + bytes - kept, kept);
  }
}

}  // namespace cmt::watch::explain
