/// glibc's malloc in another process: where its arenas and its parameters are, by version. The source of the offsets is
/// malloc/malloc.c and malloc/arena.c of each version; x86-64 only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// The layout of malloc's data in one version of glibc.
struct GlibcLayout {
  std::uint64_t bins = 0;             ///< malloc_state: offset of `bins`
  std::uint64_t system_bytes = 0;     ///< offset of `system_mem`, counted from `bins`
  std::uint64_t state_bytes = 0;      ///< sizeof(struct malloc_state)
  std::uint64_t heap_info_bytes = 0;  ///< sizeof(heap_info)
  std::uint64_t cache_chunk = 0;      ///< size of the chunk of a thread's cache; 0: this version has none
  std::uint64_t cache_entries = 0;    ///< offset of its lists
  std::uint64_t cache_bins = 0;       ///< how many lists
  std::uint64_t mapped_count = 0;     ///< malloc_par: offset of `n_mmaps`
  std::uint64_t sbrk_base = 0;        ///< offset of `sbrk_base`
  std::uint64_t mapped_bytes = 0;     ///< offset of `mmapped_mem`
  std::uint64_t thp_page = 0;         ///< offset of `thp_pagesize`; 0: this version has none
  std::uint64_t huge_page = 0;        ///< offset of `hp_pagesize`; 0: the same
  std::uint64_t mapped_header = 0;    ///< bytes of a block's own mapping that its size does not count
  bool has_fastbins = true;
  bool mangles_links = false;  ///< links of free lists are xored with their places ("safe-linking")
};

/// The layout of glibc 2.MINOR; nullopt if it is not known.
std::optional<GlibcLayout> glibc_layout(int minor);
/// Whether the layout was tried with that version, and not only read in its source.
bool is_glibc_tried(int minor);

/// malloc's parameters (`mp_`).
struct MallocParameters {
  std::uint64_t trim_threshold = 0, top_pad = 0, mmap_threshold = 0, arena_max = 0;
  std::uint64_t thp_page_bytes = 0, huge_page_bytes = 0;  ///< of glibc.malloc.hugetlb; 0: off
  std::uint64_t sbrk_base = 0;
  std::uint64_t mapped_blocks = 0, mapped_bytes = 0;  ///< blocks with mappings of their own
  bool are_thresholds_fixed = false;                  ///< mmap_threshold does not follow the blocks that are freed
};

struct Arena {
  std::uint64_t address = 0, top = 0, system_bytes = 0;
  std::vector<std::uint64_t> fast_chunks{};  ///< the first of each fastbin; 0: it is empty
};

/// malloc of a process. `arenas` begins with the main one.
struct GlibcMalloc {
  int minor = 0;  ///< of its version, 2.MINOR; 0: not known, as in some programs that are linked statically
  std::string path;
  bool is_static = false;  ///< it is in the program itself
  GlibcLayout layout;
  std::vector<Arena> arenas;
  bool is_main_contiguous = true;
  std::optional<MallocParameters> parameters;

  /// The link that is stored at `place`.
  std::uint64_t link(std::uint64_t place, std::uint64_t stored) const {
    return layout.mangles_links ? (place >> 12) ^ stored : stored;
  }
};

/// Whether a libc of glibc's is mapped.
bool maps_glibc(const AddressSpace& memory);

/// Why glibc's heap is not explained.
enum class NoGlibc {
  none,        ///< it is
  not_loaded,  ///< the program has no glibc
  not_used,    ///< its malloc has no memory: the program has another one
  swapped,     ///< its data are in swap, at least in part, and were not read
  not_known,   ///< its version, or its layout, is not known
};

struct FoundGlibc {
  NoGlibc why_not = NoGlibc::none;
  GlibcMalloc malloc;
};
/// Finds malloc by its own marks: 254 words that are list heads, and a ring of arenas that leads back.
FoundGlibc find_glibc(AddressSpace& memory);

/// The part of a chunk's size word that is its size; its lowest bits are flags.
constexpr std::uint64_t chunk_bytes(std::uint64_t size_word) { return size_word & ~std::uint64_t{7}; }
/// A chunk's bytes before its block: the size of a free chunk before it, and its own size word.
inline constexpr std::uint64_t chunk_head_bytes = 16, chunk_alignment = 16;
/// From the heads of an arena's fastbins to its bins.
inline constexpr std::uint64_t fastbins_before_bins = 96;
enum : std::uint64_t { chunk_before_in_use = 1, chunk_is_mapped = 2, chunk_not_main = 4 };

}  // namespace cmt::watch::explain
