/// An event of a trace, its kinds, and which fields a kind uses: the type that readers return and writers take.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "cmt/kinds.h"

namespace cmt {

/// The name of a block. Tags rise by one an allocation and are never reused; 0 names no block.
using Tag = std::uint64_t;

/// The name of a call stack, in the trace's StackTable (cmt/stacks.h); 0: not recorded.
using StackId = std::uint32_t;

/// The value of a time or a usable size that was not recorded.
inline constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

/// The call that an event records. The values are on the wire (format-spec/cmt.md, "Kinds") and never change; kinds.h
/// lists them with their traits. A reader returns `unknown_kind` for an event whose kind a later version has added.
enum class Kind : std::uint8_t {
#define CMT_KIND(name, number, call, traits) name = number,
  CMT_KINDS(CMT_KIND)
#undef CMT_KIND
};

/// Every kind's number is below this limit, in later versions too.
inline constexpr std::size_t kind_limit = cmt_kind_limit;

/// The kinds that this version knows, by rising number.
inline constexpr std::array known_kinds{
#define CMT_KIND(name, number, call, traits) Kind::name,
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
};

/// The name of a kind in JSON, tables and messages: "malloc", "operator_new", "thread_start". A number that this
/// version does not know, as totals may count it, has a name such as "kind_30".
std::string_view name(Kind kind);

/// Which of an event's fields a kind uses.
struct KindTraits {
  bool allocates = false;  ///< returns a block: uses `tag` and `address`
  bool releases = false;   ///< is given a block that it ends: uses `old_tag` and `old_address`
  bool names = false;      ///< is given a block that lives on: uses `old_tag` and `old_address`
  bool sizes = false;      ///< `size` is an argument
  bool counts = false;     ///< `count` is an argument
  bool aligns = false;     ///< `alignment` is an argument that is always given
  bool may_align = false;  ///< `alignment` is an argument if it is not 0 (operator new and delete). Not of pools
  bool labels = false;     ///< `label` is an argument

  KindTraits() = default;
  /// From the bits of kinds.h.
  explicit constexpr KindTraits(unsigned bits)
      : allocates((bits & cmt_allocates) != 0),
        releases((bits & cmt_releases) != 0),
        names((bits & cmt_names) != 0),
        sizes((bits & cmt_sizes) != 0),
        counts((bits & cmt_counts) != 0),
        aligns((bits & cmt_aligns) != 0),
        may_align((bits & cmt_may_align) != 0),
        labels((bits & cmt_labels) != 0) {}

  constexpr unsigned bits() const {
    return unsigned{allocates} * cmt_allocates + unsigned{releases} * cmt_releases + unsigned{names} * cmt_names +
           unsigned{sizes} * cmt_sizes + unsigned{counts} * cmt_counts + unsigned{aligns} * cmt_aligns +
           unsigned{may_align} * cmt_may_align + unsigned{labels} * cmt_labels;
  }

  /// Whether the event is given a block, to be ended or not.
  constexpr bool is_given() const { return releases || names; }
};

/// The traits of each kind, by its number. A number that is no kind has no traits.
inline constexpr std::array<KindTraits, kind_limit> all_traits = [] {
  std::array<KindTraits, kind_limit> all{};
#define CMT_KIND(name, number, call, traits) all[number] = KindTraits(traits);
  CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  return all;
}();

/// Whether this version knows the kind.
constexpr bool is_known(Kind kind) {
  constexpr std::uint64_t known = [] {
    std::uint64_t bits = 0;
    for (const Kind each : known_kinds) bits |= std::uint64_t{1} << static_cast<int>(each);
    return bits;
  }();
  const auto number = static_cast<std::size_t>(kind);
  return number < kind_limit && (known >> number & 1) != 0;
}

constexpr const KindTraits& traits(Kind kind) { return all_traits[static_cast<std::size_t>(kind)]; }

/// Whether an event names a run of pages of its block, which the program touched or which were in memory before.
constexpr bool names_pages(Kind kind) { return kind == Kind::touch || kind == Kind::resident; }

/// Whether an event is about pages of its block: names a run of them, or gives some back to the kernel.
constexpr bool is_about_pages(Kind kind) { return names_pages(kind) || kind == Kind::discard; }

/// Whether an event makes or ends a block of a pool, which is no block of malloc: uses `pool_block` and `label`.
constexpr bool is_of_pool(Kind kind) { return kind == Kind::pool_malloc || kind == Kind::pool_free; }

/// Whether an event occurs only in a sampled trace.
constexpr bool is_of_sampling(Kind kind) { return kind == Kind::sampling_interval || kind == Kind::unsample; }

/// Whether an event is of the thread that it names. Marks and samples have no thread. Touched pages have the thread
/// that noticed them, which need not be the one that wrote. Discarded pages and events of pools are left out, so that a
/// block of malloc is as temporary as without them.
constexpr bool is_of_thread(Kind kind) {
  return kind != Kind::mark && kind != Kind::sample && !is_about_pages(kind) && !is_of_pool(kind);
}

/// Whether an event is a call that returns memory to the system, or that sets when the allocator does so.
constexpr bool gives_memory_back(Kind kind) {
  return kind == Kind::malloc_trim || kind == Kind::mallopt || kind == Kind::mallctl;
}

/// Begins the label of the last mark of a process that a signal has ended; the signal's name follows: SIGTERM.
inline constexpr std::string_view ended_by_label = "ended by ";

/// One event: a call, a thread's start or end, a mark, a sample, or touched pages of a block. Fields that its kind does
/// not use have their defaults.
struct Event {
  Kind kind = Kind::malloc;
  std::uint32_t thread = 0;  ///< the calling thread, numbered by the recorder from 0
  /// Bytes. By kind: requested (for one element if the kind counts), stated by a free, resident in a sample, or kept by
  /// malloc_trim. For touched and discarded pages: the bytes from the block's begin to the first page.
  std::uint64_t size = 0;
  /// Elements (calloc, reallocarray), touched pages (0 = up to the block's end), or discarded bytes.
  std::uint64_t count = 1;
  std::uint64_t alignment = 0;      ///< bytes; 0 = none was asked for. For touched pages: the page size
  Tag tag = 0;                      ///< the block that the call returned; 0 = NULL
  Tag old_tag = 0;                  ///< the block that the call was given; 0 = NULL, or none
  std::uint64_t address = 0;        ///< of `tag`; 0 = NULL, or not recorded
  std::uint64_t old_address = 0;    ///< of `old_tag`; 0 = NULL, or not recorded
  std::uint64_t time_ns = unknown;  ///< since the start of the recording
  std::uint64_t usable = unknown;   ///< malloc_usable_size of `tag`, in bytes
  /// The text of a mark, a thread's name or a setting, or the name of the event's pool; valid until the next read.
  std::string_view label{};
  StackId stack = 0;  ///< the call stack; 0 = not recorded
  /// The block that a pool has made or ended; 0 = none. The blocks of all pools of a trace have one sequence of
  /// numbers, which is not that of the tags.
  std::uint64_t pool_block = 0;

  /// Bytes requested in all: size times count, or `unknown` if that overflows.
  std::uint64_t bytes() const {
    std::uint64_t product;
    return __builtin_mul_overflow(size, count, &product) ? unknown : product;
  }

  bool makes_block() const { return tag != 0; }

  /// Whether the event ends the block `old_tag`. A realloc that returned NULL leaves its block alive, unless it asked
  /// for 0 bytes: such a realloc is a free. A kind that only names its block leaves it alive too.
  bool ends_block() const {
    return old_tag != 0 && !traits(kind).names && (tag != 0 || !traits(kind).allocates || bytes() == 0);
  }

  /// Whether the allocation was refused: it returned NULL although it asked for more than 0 bytes.
  bool failed() const { return traits(kind).allocates && tag == 0 && bytes() != 0; }
};

}  // namespace cmt
