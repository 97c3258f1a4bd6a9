// Finds glibc's malloc in the data of libc, or of a program that is linked statically.
#include "cmtwatch/explain/heap/glibc.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

namespace cmt::watch::explain {
namespace {

constexpr int oldest_minor = 17, newest_minor = 43;
constexpr std::uint64_t word_bytes = 8, bin_words = 254, arenas_max = 4096;
/// Offsets from `bins`.
constexpr std::uint64_t top_before_bins = 16, fastbins = 10, next_after_bins = 2048;

/// Writable memory that holds a module's data: its own pages and the anonymous ones that follow.
struct ModuleData {
  std::string path;
  Range range;
};

bool is_writable(const process::Mapping& mapping) { return mapping.permissions.starts_with("rw"); }

bool is_libc(std::string_view path) {
  const std::string_view name = process::file_name_of(path);
  return name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
}

/// The data of modules that pass `is_wanted`.
template <class Wanted>
std::vector<ModuleData> data_of(const AddressSpace& memory, Wanted is_wanted) {
  std::vector<ModuleData> found;
  const auto& all = memory.mappings();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_writable(all[i]) || all[i].shared() || !all[i].name.starts_with("/") || !is_wanted(all[i].name)) continue;
    Range range{all[i].begin, all[i].end};
    const bool has_bss =
        i + 1 < all.size() && all[i + 1].begin == range.end && all[i + 1].name.empty() && is_writable(all[i + 1]);
    if (has_bss) range.end = all[i + 1].end;
    found.push_back({all[i].name, range});
  }
  return found;
}

/// "2.36" after glibc's banner; 0: not found.
int minor_in(std::string_view text) {
  constexpr std::string_view banner = "GNU C Library", version = "version 2.";
  const auto begin = text.find(banner);
  if (begin == text.npos) return 0;
  const auto at = text.find(version, begin);
  constexpr std::size_t digits = 2;  // from 2.10 on
  if (at == text.npos || at - begin > 200 || text.size() - at < version.size() + digits) return 0;
  int minor = 0;
  std::from_chars(text.data() + at + version.size(), text.data() + at + version.size() + digits, minor);
  return minor;
}

/// A piece of a module's memory, read as words.
struct Words {
  Range range;
  std::vector<std::uint64_t> words;

  std::uint64_t address(std::size_t index) const { return range.begin + index * word_bytes; }
};

Words read_words(AddressSpace& memory, Range range) {
  Words data{range, std::vector<std::uint64_t>(range.bytes() / word_bytes)};
  for (std::uint64_t at = range.begin; at < range.end;) {
    const process::Mapping* const mapping = memory.find(at);
    if (mapping == nullptr) break;
    const std::uint64_t end = std::min(range.end, mapping->end);
    memory.read_pages({at, end}, reinterpret_cast<std::uint8_t*>(data.words.data()) + (at - range.begin));
    at = end;
  }
  return data;
}

/// Calls use(words) for pieces of a range that have resident pages, until it returns true. A piece and the next have a
/// page in common. A program may have gigabytes of static data, and a damaged core file may claim terabytes.
template <class Use>
void each_window(AddressSpace& memory, Range range, Use use) {
  constexpr std::uint64_t window_bytes = 1 << 20;
  for (std::uint64_t at = memory.next_resident(range); at < range.end;) {
    const Range window{at, std::min(range.end, at + window_bytes)};
    if (use(read_words(memory, window)) || window.end == range.end) return;
    at = memory.next_resident({window.end - page_bytes, range.end});
  }
}

/// Whether a file that begins so can be the one that was mapped: its first page is the same, if that can be read.
bool is_mapped_file(AddressSpace& memory, const std::string& path, std::string_view begin) {
  for (const process::Mapping& mapping : memory.mappings()) {
    if (mapping.name != path || mapping.offset != 0) continue;
    std::array<char, page_bytes> first;
    if (!memory.read(mapping.begin, first.data(), sizeof first)) return true;
    return begin.size() >= first.size() && std::memcmp(begin.data(), first.data(), first.size()) == 0;
  }
  return true;
}

/// The version of the libc at a path. A file that an upgrade has replaced, or another machine's, is looked for in
/// memory.
int find_minor(AddressSpace& memory, const std::string& path) {
  int in_file = 0;
  bool is_first = true, is_mapped = false;
  const bool is_read = memory.read_file(path, [&](std::string_view piece) {
    if (std::exchange(is_first, false)) is_mapped = is_mapped_file(memory, path, piece);
    in_file = is_mapped ? minor_in(piece) : 0;
    return is_mapped && in_file == 0;
  });
  if (is_read && is_mapped) return in_file;
  for (const process::Mapping& mapping : memory.mappings()) {
    if (mapping.name != path || mapping.permissions[0] != 'r') continue;
    int minor = 0;
    each_window(memory, {mapping.begin, mapping.end}, [&minor](const Words& data) {
      minor = minor_in({reinterpret_cast<const char*>(data.words.data()), data.range.bytes()});
      return minor != 0;
    });
    if (minor != 0) return minor;
  }
  return 0;
}

/// Marks of glibc's malloc in the text of a program that is linked statically.
struct StaticMarks {
  bool has_malloc = false;
  std::vector<int>
      minors{};  ///< versions that it may be: a program has "2.36" by itself, if it calls certain functions
};

StaticMarks marks_in_program(const AddressSpace& memory, const std::string& path) {
  constexpr std::string_view begin("\0002.", 3), message = "corrupted double-linked list";
  StaticMarks marks;
  memory.read_file(path, [&](std::string_view piece) {
    marks.has_malloc = marks.has_malloc || piece.find(message) != piece.npos;
    for (auto at = piece.find(begin); at != piece.npos; at = piece.find(begin, at + 1)) {
      const std::string_view digits = piece.substr(at + begin.size(), 3);
      int minor = 0;
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), minor).ptr;
      const bool is_version = digits.size() == 3 && end == digits.data() + 2 && digits[2] == '\0';
      if (is_version && glibc_layout(minor)) marks.minors.push_back(minor);
    }
    return true;
  });
  return marks;
}

/// Whether a word can be the head of a list in `bins`: the list itself, if it is empty, or a chunk.
bool is_list_link(const AddressSpace& memory, Range module, std::uint64_t word, std::uint64_t empty) {
  if (word == empty) return true;
  if (word % 16 != 0 || module.contains(word)) return false;
  const process::Mapping* const mapping = memory.find(word);
  return mapping != nullptr && is_writable(*mapping);
}

bool are_bins(const AddressSpace& memory, Range module, const Words& data, std::size_t at) {
  for (std::size_t i = 0; i < bin_words; ++i) {
    const std::uint64_t empty = data.address(at + (i & ~std::size_t{1})) - 2 * word_bytes;
    if (!is_list_link(memory, module, data.words[at + i], empty)) return false;
  }
  return true;
}

/// The arenas of the ring that `first` is in; empty if it does not lead back.
std::vector<std::uint64_t> ring_of(AddressSpace& memory, std::uint64_t first, std::uint64_t bins) {
  std::vector<std::uint64_t> ring;
  for (std::uint64_t at = first; ring.size() < arenas_max;) {
    ring.push_back(at);
    const auto next = memory.read<std::uint64_t>(at + bins + next_after_bins);
    if (!next || *next == 0) return {};
    if (*next == first) return ring;
    at = *next;
  }
  return {};
}

Arena read_arena(AddressSpace& memory, std::uint64_t address, const GlibcLayout& layout) {
  const std::uint64_t bins = address + layout.bins;
  const auto word = [&](std::uint64_t at) { return memory.read<std::uint64_t>(at).value_or(0); };
  Arena arena{address, word(bins - top_before_bins), word(bins + layout.system_bytes)};
  for (std::uint64_t i = 0; layout.has_fastbins && i < fastbins; ++i)
    arena.fast_chunks.push_back(word(bins - fastbins_before_bins + i * word_bytes));
  return arena;
}

/// The marks of `mp_`: its `sbrk_base` is the begin of [heap], and other members have their defaults.
enum class Marks { both, heap, defaults };

/// Reads `mp_` at the word `at`, if it is there. `heap`: the begin of [heap]; 0: there is none.
std::optional<MallocParameters> parameters_at(const Words& data, std::size_t at, const GlibcLayout& layout,
                                              std::uint64_t heap, Marks marks) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(data.words.data() + at);
  const auto word = [&](std::uint64_t offset) { return data.words[at + offset / word_bytes]; };
  const auto number = [&](std::uint64_t offset) {
    std::int32_t value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  };
  const std::uint64_t arena_test = word(24), base = word(layout.sbrk_base);
  const std::int32_t mapped_max = number(layout.mapped_count + 4);
  const bool by_heap = heap != 0 && base - heap < page_bytes && mapped_max >= 0 && arena_test <= 64;
  const bool by_defaults = mapped_max == 65536 && arena_test >= 1 && arena_test <= 8 && word(8) % page_bytes == 0;
  const bool is_known = marks == Marks::both ? by_heap && by_defaults : marks == Marks::heap ? by_heap : by_defaults;
  if (!is_known) return std::nullopt;
  MallocParameters found{
      .trim_threshold = word(0), .top_pad = word(8), .mmap_threshold = word(16), .arena_max = word(32)};
  if (layout.thp_page != 0) found.thp_page_bytes = word(layout.thp_page);
  if (layout.huge_page != 0) found.huge_page_bytes = word(layout.huge_page);
  found.sbrk_base = base;
  found.mapped_blocks = static_cast<std::uint64_t>(std::max(0, number(layout.mapped_count)));
  found.mapped_bytes = word(layout.mapped_bytes);
  found.are_thresholds_fixed = number(layout.mapped_count + 12) != 0;
  return found;
}

/// `has_heap`: [heap] may be malloc's. Else its begin marks nothing.
std::optional<MallocParameters> find_parameters(AddressSpace& memory, Range module, const GlibcLayout& layout,
                                                bool has_heap) {
  std::uint64_t heap = 0;
  for (const process::Mapping& mapping : memory.mappings()) {
    if (has_heap && heap == 0 && mapping.name == "[heap]") heap = mapping.begin;
  }
  const std::size_t words = layout.sbrk_base / word_bytes + 1;
  std::optional<MallocParameters> found;
  for (const Marks marks : {Marks::both, Marks::heap, Marks::defaults}) {
    each_window(memory, module, [&](const Words& data) {
      for (std::size_t at = 0; !found && at + words <= data.words.size(); ++at)
        found = parameters_at(data, at, layout, heap, marks);
      return found.has_value();
    });
    if (found) return found;
  }
  return std::nullopt;
}

/// Returns the arenas' addresses, if malloc is in a piece of a module's data; else none.
std::vector<std::uint64_t> find_arenas(AddressSpace& memory, Range module, const Words& data,
                                       const GlibcLayout& layout) {
  const std::size_t before = layout.bins / word_bytes;
  for (std::size_t at = before; at + bin_words + 8 <= data.words.size(); ++at) {
    if (data.words[at] == 0 || !are_bins(memory, module, data, at)) continue;
    auto ring = ring_of(memory, data.address(at - before), layout.bins);
    if (!ring.empty()) return ring;
  }
  return {};
}

/// Whether a piece of a module's data has the main arena as it is before the first use. Then no list has a head, and
/// the arena is alone in its ring.
bool has_unused_arena(const Words& data, const GlibcLayout& layout) {
  const std::size_t before = layout.bins / word_bytes, next = next_after_bins / word_bytes;
  for (std::size_t at = before; at + next < data.words.size(); ++at) {
    const auto bins = data.words.begin() + static_cast<std::ptrdiff_t>(at);
    if (data.words[at + next] == data.address(at - before) &&
        std::all_of(bins - top_before_bins / word_bytes, bins + bin_words,
                    [](std::uint64_t word) { return word == 0; }))
      return true;
  }
  return false;
}

/// Why malloc was not found in a module's data.
NoGlibc why_not_found(AddressSpace& memory, Range module, const GlibcLayout& layout) {
  if (memory.swapped_bytes(module) == 0) return NoGlibc::not_used;
  bool is_unused = false;
  each_window(memory, module, [&](const Words& data) {
    is_unused = has_unused_arena(data, layout);
    return is_unused;
  });
  return is_unused ? NoGlibc::not_used : NoGlibc::swapped;
}

bool has_arena_memory(const GlibcMalloc& malloc) {
  return std::any_of(malloc.arenas.begin(), malloc.arenas.end(),
                     [](const Arena& arena) { return arena.system_bytes != 0; });
}

/// Looks for malloc in one module's data.
bool find_malloc(AddressSpace& memory, Range module, GlibcMalloc& malloc) {
  std::vector<std::uint64_t> ring;
  each_window(memory, module, [&](const Words& data) {
    ring = find_arenas(memory, module, data, malloc.layout);
    return !ring.empty();
  });
  if (ring.empty()) return false;
  for (const std::uint64_t address : ring) malloc.arenas.push_back(read_arena(memory, address, malloc.layout));
  constexpr std::uint32_t noncontiguous = 2;
  malloc.is_main_contiguous = (memory.read<std::uint32_t>(ring[0] + 4).value_or(0) & noncontiguous) == 0;
  malloc.parameters = find_parameters(memory, module, malloc.layout, has_arena_memory(malloc));
  return true;
}

}  // namespace

std::optional<GlibcLayout> glibc_layout(int minor) {
  if (minor < oldest_minor || minor > newest_minor) return std::nullopt;
  const auto since = [minor](int version) { return minor >= version; };
  GlibcLayout layout;
  layout.bins = since(43) ? 0x18 : since(27) ? 0x70 : 0x68;
  layout.system_bytes = next_after_bins + (since(23) ? 24 : 16);
  layout.state_bytes = layout.bins + next_after_bins + (since(23) ? 40 : 32);
  layout.heap_info_bytes = since(35) ? 0x30 : 0x20;
  layout.cache_chunk = since(42) ? 0x300 : since(30) ? 0x290 : since(26) ? 0x250 : 0;
  layout.cache_entries = since(42) ? 152 : since(30) ? 128 : 64;
  layout.cache_bins = since(42) ? 76 : 64;
  layout.mapped_count = since(43) ? 68 : since(35) ? 60 : 40;
  layout.sbrk_base = since(43) ? 104 : since(35) ? 96 : since(24) ? 72 : 80;
  layout.mapped_bytes = layout.sbrk_base - (since(24) ? 16 : 24);
  layout.thp_page = since(43) ? 48 : since(35) ? 40 : 0;
  layout.huge_page = since(43) ? 56 : since(35) ? 48 : 0;
  layout.mapped_header = since(43) ? 16 : 0;
  layout.has_fastbins = !since(43);
  layout.mangles_links = since(32);
  return layout;
}

bool maps_glibc(const AddressSpace& memory) {
  return std::any_of(memory.mappings().begin(), memory.mappings().end(),
                     [](const process::Mapping& mapping) { return is_libc(mapping.name); });
}

bool is_glibc_tried(int minor) { return minor == 31 || minor == 36 || minor == 41 || minor == 43; }

namespace {

/// Whether a layout is right that was tried without knowing the version. In no other version, the bins are where 2.43
/// has them. Versions 2.35 to 2.41 have one layout. There the first chunk is the cache of the first thread.
bool is_layout_right(AddressSpace& memory, const GlibcMalloc& malloc) {
  if (!malloc.layout.has_fastbins) return true;
  const std::uint64_t first = (malloc.parameters->sbrk_base + chunk_alignment - 1) & ~(chunk_alignment - 1);
  const auto size = memory.read<std::uint64_t>(first + 8);
  return size && chunk_bytes(*size) == malloc.layout.cache_chunk;
}

/// Looks for malloc in a program that is linked statically.
FoundGlibc find_static_glibc(AddressSpace& memory) {
  FoundGlibc found{NoGlibc::not_loaded, {}};
  for (const ModuleData& module : data_of(memory, [](const std::string&) { return true; })) {
    const StaticMarks marks = marks_in_program(memory, module.path);
    if (!marks.has_malloc) continue;
    const bool is_minor_known = !marks.minors.empty();
    for (const int minor : is_minor_known ? marks.minors : std::vector<int>{41, 43}) {
      GlibcMalloc malloc;
      malloc.minor = is_minor_known ? minor : 0;
      malloc.path = module.path;
      malloc.is_static = true;
      malloc.layout = *glibc_layout(minor);
      if (find_malloc(memory, module.range, malloc) && malloc.parameters &&
          (is_minor_known || is_layout_right(memory, malloc)))
        return {NoGlibc::none, malloc};
      found = {why_not_found(memory, module.range, malloc.layout), malloc};
    }
    if (!is_minor_known && found.why_not == NoGlibc::not_used) found.why_not = NoGlibc::not_known;
  }
  return found;
}

/// Whether malloc has memory. Without, another malloc serves the program: mallinfo2(3), malloc_trim(3) and their like
/// make glibc's ready, and take no memory for it.
bool has_memory(const GlibcMalloc& malloc) {
  return has_arena_memory(malloc) || (malloc.parameters && malloc.parameters->mapped_blocks != 0);
}

}  // namespace

FoundGlibc find_glibc(AddressSpace& memory) {
  FoundGlibc found{NoGlibc::not_loaded, {}};
  for (const ModuleData& module : data_of(memory, is_libc)) {
    GlibcMalloc malloc;
    malloc.path = module.path;
    malloc.minor = find_minor(memory, module.path);
    const auto layout = glibc_layout(malloc.minor);
    if (!layout) {
      found = {NoGlibc::not_known, malloc};
      continue;
    }
    malloc.layout = *layout;
    if (find_malloc(memory, module.range, malloc) && has_memory(malloc)) return {NoGlibc::none, malloc};
    found = {malloc.parameters ? NoGlibc::not_used : why_not_found(memory, module.range, *layout), malloc};
  }
  if (found.why_not == NoGlibc::not_loaded) return find_static_glibc(memory);
  return found;
}

}  // namespace cmt::watch::explain
