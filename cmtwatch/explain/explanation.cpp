// Books all resident memory to parts, by ranges of addresses.
#include "cmtwatch/explain/explanation.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "cmtwatch/explain/heap/thread_stacks.h"
#include "cmtwatch/explain/memory/static_data.h"
#include "cmtwatch/explain/owners/owners.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch::explain {
namespace {

/// Memory whose parts are known.
struct Claim {
  Range range{};
  PartKind kind = PartKind::anonymous;
};

/// Whether pages are asked for one by one: private memory of no file.
bool is_by_pages(const process::Mapping& mapping) {
  if (mapping.shared() || mapping.name.starts_with("/")) return false;
  return mapping.name.empty() || mapping.name == "[heap]" || mapping.name == "[stack]" ||
         mapping.name.starts_with("[anon");
}

bool is_shared_memory(const process::Mapping& mapping) {
  const std::string& name = mapping.name;
  return mapping.shared() &&
         (name.empty() || mapping.hugetlb_bytes() != 0 || names_shared_memory(name) || name.starts_with("[anon"));
}

/// How often a part of a file is mapped at most; 1 if at most a quarter of all mapped bytes are mapped before. The
/// segments of a library share a page.
std::uint64_t times_mapped(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::uint64_t all = 0, again = 0, end = 0, most = 1;
  std::vector<std::uint64_t> open;  // the ends of those that have begun
  for (const Range& range : ranges) {
    all += range.bytes();
    if (range.begin < end) again += std::min(end, range.end) - range.begin;
    end = std::max(end, range.end);
    std::erase_if(open, [&](std::uint64_t other) { return other <= range.begin; });
    open.push_back(range.end);
    most = std::max<std::uint64_t>(most, open.size());
  }
  return again <= all / 4 ? 1 : most;
}

class Booking {
 public:
  Booking(AddressSpace& memory, BlockSites* sites) : memory_(memory), sites_(sites) { result_.sites = sites; }

  Explanation book() {
    const std::vector<LibcThread> threads = find_libc_threads(memory_);
    note_threads(threads);
    read_malloc(threads);
    for (const LibcThread& thread : threads)
      claim_beside_heap(thread.stack, thread.has_ended ? PartKind::ended_stacks : PartKind::stacks);
    for (const Range& range : find_static_data(memory_)) claim_beside_heap(range, PartKind::written_files);
    std::sort(claims_.begin(), claims_.end(),
              [](const Claim& a, const Claim& b) { return a.range.begin < b.range.begin; });
    for (const process::Mapping& mapping : memory_.mappings()) add(mapping);
    add_heap_parts();
    add_owners();
    list_files();
    for (const auto& [kind, bytes] : sums_) {
      if (bytes != 0) result_.parts.push_back({kind, bytes});
    }
    return std::move(result_);
  }

 private:
  void note_threads(const std::vector<LibcThread>& threads) {
    std::uint64_t alive = 0;
    for (const LibcThread& thread : threads) {
      alive += !thread.has_ended;
      result_.ended_stacks += thread.has_ended && thread.stack.end != 0;
    }
    result_.threads = memory_.threads().size();
    lost_threads_ = result_.threads - std::min(result_.threads, alive);
  }

  // Damaged memory may claim a part of the heap, which add_heap_parts() books.
  void claim_beside_heap(Range range, PartKind kind) {
    static const std::vector<Range> none;
    const std::vector<Range>& heaps = result_.heap ? result_.heap->heap_ranges : none;
    auto heap = std::upper_bound(heaps.begin(), heaps.end(), range.begin,
                                 [](std::uint64_t at, const Range& each) { return at < each.end; });
    for (; heap != heaps.end() && heap->begin < range.end; ++heap) {
      if (heap->begin > range.begin) claims_.push_back({{range.begin, heap->begin}, kind});
      range.begin = heap->end;
    }
    if (range.begin < range.end) claims_.push_back({range, kind});
  }

  void find_other_malloc() {
    constexpr std::string_view known[] = {"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc_proxy",
                                          "libscudo",    "librpmalloc", "libsnmalloc", "libhoard"};
    for (const process::Mapping& mapping : memory_.mappings()) {
      const std::string_view file = std::string_view(mapping.name).substr(mapping.name.rfind('/') + 1);
      for (const std::string_view name : known) {
        if (mapping.name.starts_with("/") && file.starts_with(name)) result_.other_malloc = file;
      }
    }
  }

  void read_malloc(const std::vector<LibcThread>& threads) {
    FoundGlibc found = find_glibc(memory_);
    result_.why_no_heap = found.why_not;
    result_.glibc_minor = found.malloc.minor;
    find_other_malloc();
    if (found.why_not != NoGlibc::none) return;
    result_.heap = read_heap(memory_, std::move(found.malloc), threads, sites_);
    for (const Range& range : result_.heap->heap_ranges) claims_.push_back({range, PartKind::live});
    for (const Range& range : result_.heap->mapped.ranges) claims_.push_back({range, PartKind::large});
    result_.doubts = result_.heap->doubts;
    if (lost_threads_ != 0)
      result_.doubts.push_back("the caches of " + output::counted(lost_threads_, "thread") +
                               " were not found: what is in them counts as live");
    if (result_.glibc_minor != 0 && !is_glibc_tried(result_.glibc_minor))
      result_.doubts.push_back("the layout of glibc 2." + std::to_string(result_.glibc_minor) +
                               " is from its source, and was never tried");
  }

  void add(const process::Mapping& mapping) {
    result_.resident_bytes += mapping.resident_bytes;
    result_.swapped_bytes += mapping.swapped_bytes;
    result_.huge_page_bytes += mapping.huge_page_bytes;
    result_.lazy_free_bytes += mapping.lazy_free_bytes;
    result_.hugetlb_bytes += mapping.hugetlb_bytes();
    const auto resident = static_cast<std::int64_t>(mapping.resident_bytes);
    if (is_by_pages(mapping)) {
      add_by_pages(mapping);
    } else if (is_shared_memory(mapping)) {
      sums_[PartKind::shared] += resident;
      note_file(mapping, PartKind::shared, 0);
    } else if (mapping.name.starts_with("/")) {
      const auto written = static_cast<std::int64_t>(std::min(mapping.anonymous_bytes, mapping.resident_bytes));
      sums_[PartKind::written_files] += written;
      sums_[PartKind::files] += resident - written;
      note_file(mapping, PartKind::files, static_cast<std::uint64_t>(written));
    } else {
      sums_[PartKind::special] += resident;
    }
  }

  void note_file(const process::Mapping& mapping, PartKind kind, std::uint64_t copied) {
    FileMemory& file = files_[{kind, mapping.name}];
    file.resident_bytes += mapping.resident_bytes;
    file.copied_bytes += copied;
    file.proportional_bytes += mapping.proportional_bytes;
    if (mapping.resident_bytes != 0)
      ranges_[{kind, mapping.name}].push_back({mapping.offset, mapping.offset + (mapping.end - mapping.begin)});
    if (!memory_.knows_sharing()) return;
    file.own_bytes = file.own_bytes.value_or(0) + mapping.private_bytes;
    file.dirty_bytes = file.dirty_bytes.value_or(0) + mapping.dirty_bytes;
  }

  void list_files() {
    for (auto& [key, file] : files_) {
      if (file.resident_bytes == 0) continue;
      file.kind = key.first;
      file.name = key.second;
      // If Pss is nearly the resident size, nothing is resident twice, or several files have this name.
      const bool is_shared = file.own_bytes && file.resident_bytes - file.proportional_bytes >= file.resident_bytes / 4;
      if (is_shared && file.proportional_bytes <= file.resident_bytes) file.times_mapped = times_mapped(ranges_[key]);
      result_.files.push_back(std::move(file));
    }
    std::stable_sort(result_.files.begin(), result_.files.end(),
                     [](const FileMemory& a, const FileMemory& b) { return a.resident_bytes > b.resident_bytes; });
  }

  // add_heap_parts() books the memory of the heap.
  void add_by_pages(const process::Mapping& mapping) {
    const PartKind rest = mapping.name == "[stack]" ? PartKind::stacks : PartKind::anonymous;
    std::int64_t booked = 0;
    std::uint64_t at = mapping.begin;
    const auto take = [&](std::uint64_t end, PartKind kind) {
      if (end <= at) return;
      const auto bytes = static_cast<std::int64_t>(memory_.resident_bytes({at, end}));
      booked += bytes;
      if (kind == PartKind::anonymous) unknown_.push_back({at, end});
      if (kind != PartKind::live) sums_[kind] += bytes;
      at = end;
    };
    while (next_claim_ < claims_.size() && claims_[next_claim_].range.end <= at) ++next_claim_;
    for (std::size_t i = next_claim_; i < claims_.size() && claims_[i].range.begin < mapping.end; ++i) {
      take(claims_[i].range.begin, rest);
      take(std::min(claims_[i].range.end, mapping.end), claims_[i].kind);
    }
    take(mapping.end, rest);
    sums_[PartKind::changed] += static_cast<std::int64_t>(mapping.resident_bytes) - booked;
  }

  void add_owners() {
    for (const OwnedMemory& owned : find_owners(memory_, unknown_)) {
      Part part{PartKind::owned, 0, owned.owner, owned.is_likely, owned.live_bytes, owned.remark};
      for (const Range& range : owned.ranges) part.bytes += static_cast<std::int64_t>(memory_.resident_bytes(range));
      sums_[PartKind::anonymous] -= part.bytes;
      if (part.bytes != 0) result_.parts.push_back(std::move(part));
    }
  }

  void add_heap_parts() {
    if (!result_.heap) return;
    const HeapFigures& figures = result_.heap->figures;
    const auto add = [&](PartKind kind, std::uint64_t bytes) { sums_[kind] += static_cast<std::int64_t>(bytes); };
    add(PartKind::live, figures.live_resident);
    add(PartKind::trimmable, figures.trim_bytes);
    add(PartKind::arena_tops, figures.kept_tops_bytes);
    add(PartKind::pinned, figures.pinned_bytes());
    add(PartKind::thread_caches, figures.cached_resident);
    add(PartKind::malloc_data, figures.overhead_resident);
    const std::uint64_t booked =
        figures.live_resident + figures.free_resident + figures.cached_resident + figures.overhead_resident;
    sums_[PartKind::changed] += static_cast<std::int64_t>(result_.heap->heap_resident - booked);
  }

  AddressSpace& memory_;
  BlockSites* const sites_;
  Explanation result_;
  std::vector<Claim> claims_;   // by address
  std::size_t next_claim_ = 0;  // the first that may be in the next mapping
  std::vector<Range> unknown_;  // anonymous memory that malloc does not hold
  std::map<PartKind, std::int64_t> sums_;
  std::map<std::pair<PartKind, std::string>, FileMemory> files_;
  std::map<std::pair<PartKind, std::string>, std::vector<Range>> ranges_;  // of the mappings of each file
  std::uint64_t lost_threads_ = 0;
};

struct PartName {
  PartKind kind;
  const char* key;
  const char* name;
};
constexpr PartName part_names[] = {
    {PartKind::live, "live", "live in malloc's blocks"},
    {PartKind::large, "large", "live in large blocks with mappings of their own"},
    {PartKind::trimmable, "trimmable", "free, malloc_trim would give it back"},
    {PartKind::pinned, "pinned", "free, on pages that live blocks keep"},
    {PartKind::arena_tops, "arena_tops", "free, at the ends of threads' arenas"},
    {PartKind::thread_caches, "thread_caches", "free, in threads' caches"},
    {PartKind::malloc_data, "malloc_data", "malloc's own data"},
    {PartKind::owned, "owned", ""},
    {PartKind::anonymous, "anonymous", "other anonymous memory"},
    {PartKind::stacks, "stacks", "stacks of threads"},
    {PartKind::ended_stacks, "ended_stacks", "stacks of threads that have ended"},
    {PartKind::files, "files", "program, libraries and other files"},
    {PartKind::written_files, "written_files", "written data of program and libraries"},
    {PartKind::shared, "shared", "shared memory"},
    {PartKind::special, "special", "the kernel's mappings"},
    {PartKind::changed, "changed", "changed while it was read"},
};

const PartName& name_of(PartKind kind) {
  return *std::find_if(std::begin(part_names), std::end(part_names),
                       [kind](const PartName& each) { return each.kind == kind; });
}

}  // namespace

std::string part_name(const Part& part) {
  return part.kind == PartKind::owned ? part.owner + (part.is_likely ? ", likely" : "") : name_of(part.kind).name;
}

std::string part_key(const Part& part) { return name_of(part.kind).key; }

std::uint64_t Explanation::bytes_of(PartKind kind) const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.kind == kind ? part.bytes : 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, sum));
}

std::vector<Part> Explanation::parts_by_size() const {
  std::vector<Part> sorted = parts;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::vector<FileMemory> Explanation::large_files() const {
  std::vector<FileMemory> large;
  for (const FileMemory& file : files) {
    if (is_worth(file.resident_bytes)) large.push_back(file);
  }
  return large;
}

Explanation explain(AddressSpace& memory, BlockSites* sites) { return Booking(memory, sites).book(); }

}  // namespace cmt::watch::explain
