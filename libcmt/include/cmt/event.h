#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace cmt {

/// The name of a block. Tags rise by one an allocation and are never reused; 0 names no block.
using Tag = std::uint64_t;

/// A time or a usable size that was not recorded.
inline constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

/// What was called. The values are on the wire (format-spec/cmt.md, "Kinds") and never change.
enum class Kind : std::uint8_t {
  malloc = 0,
  free = 1,
  calloc = 2,
  realloc = 3,
  reallocarray = 4,
  aligned_alloc = 5,
  posix_memalign = 6,
  memalign = 7,
  valloc = 8,
  pvalloc = 9,
  free_sized = 10,
  free_aligned_sized = 11,
  operator_new = 12,
  operator_new_nothrow = 13,
  operator_new_array = 14,
  operator_new_array_nothrow = 15,
  operator_delete = 16,
  operator_delete_sized = 17,
  operator_delete_array = 18,
  operator_delete_array_sized = 19,
  thread_start = 20,
  thread_exit = 21,
  thread_name = 22,
  mark = 23,
  sample = 24,
};

inline constexpr int kind_count = 25;

/// The name of a kind as JSON, tables and messages give it: "malloc", "operator_new", "thread_start".
std::string_view name(Kind kind);

/// Which of an event's fields a kind uses.
struct KindTraits {
  bool allocates;  ///< returns a block: `tag` and `address` are meant
  bool releases;   ///< is given a block: `old_tag` and `old_address` are meant
  bool counts;     ///< `count` is an argument
  bool sizes;      ///< `size` is an argument
  bool aligns;     ///< `alignment` is an argument that is always given
  bool may_align;  ///< `alignment` is an argument where it is not 0 (operator new and delete)
  bool labels;     ///< `label` is an argument
};

/// By Kind: {allocates, releases, counts, sizes, aligns, may_align, labels}.
inline constexpr std::array<KindTraits, kind_count> all_traits{{
    {true, false, false, true, false, false, false},    // malloc
    {false, true, false, false, false, false, false},   // free
    {true, false, true, true, false, false, false},     // calloc
    {true, true, false, true, false, false, false},     // realloc
    {true, true, true, true, false, false, false},      // reallocarray
    {true, false, false, true, true, false, false},     // aligned_alloc
    {true, false, false, true, true, false, false},     // posix_memalign
    {true, false, false, true, true, false, false},     // memalign
    {true, false, false, true, false, false, false},    // valloc
    {true, false, false, true, false, false, false},    // pvalloc
    {false, true, false, true, false, false, false},    // free_sized
    {false, true, false, true, true, false, false},     // free_aligned_sized
    {true, false, false, true, false, true, false},     // operator_new
    {true, false, false, true, false, true, false},     // operator_new_nothrow
    {true, false, false, true, false, true, false},     // operator_new_array
    {true, false, false, true, false, true, false},     // operator_new_array_nothrow
    {false, true, false, false, false, true, false},    // operator_delete
    {false, true, false, true, false, true, false},     // operator_delete_sized
    {false, true, false, false, false, true, false},    // operator_delete_array
    {false, true, false, true, false, true, false},     // operator_delete_array_sized
    {false, false, false, false, false, false, false},  // thread_start
    {false, false, false, false, false, false, false},  // thread_exit
    {false, false, false, false, false, false, true},   // thread_name
    {false, false, false, false, false, false, true},   // mark
    {false, false, false, true, false, false, false},   // sample
}};

constexpr const KindTraits& traits(Kind kind) { return all_traits[static_cast<std::size_t>(kind)]; }

/// One call. Fields that a kind does not use hold their defaults.
struct Event {
  Kind kind = Kind::malloc;
  std::uint32_t thread = 0;         ///< the calling thread, numbered by the recorder from 0
  std::uint64_t size = 0;           ///< bytes asked for (of one element where `count` is used), stated, or resident
  std::uint64_t count = 1;          ///< elements: calloc and reallocarray
  std::uint64_t alignment = 0;      ///< bytes; 0 = none was asked for
  Tag tag = 0;                      ///< the block that the call returned; 0 = NULL
  Tag old_tag = 0;                  ///< the block that the call was given; 0 = NULL
  std::uint64_t address = 0;        ///< of `tag`; 0 = NULL, or not recorded
  std::uint64_t old_address = 0;    ///< of `old_tag`; 0 = NULL, or not recorded
  std::uint64_t time_ns = unknown;  ///< since the start of the recording
  std::uint64_t usable = unknown;   ///< malloc_usable_size of `tag`, in bytes
  std::string_view label{};         ///< of a mark or a thread's name; valid until the next read

  /// Bytes asked for in all: size times count, or `unknown` where that overflows.
  std::uint64_t bytes() const {
    std::uint64_t product;
    return __builtin_mul_overflow(size, count, &product) ? unknown : product;
  }

  bool makes_block() const { return tag != 0; }

  /// Whether `old_tag` is dead afterwards. A realloc that returns NULL leaves its block alive, unless it
  /// asked for 0 bytes: then it was a free.
  bool ends_block() const { return old_tag != 0 && (tag != 0 || !traits(kind).allocates || bytes() == 0); }

  /// Whether the call was refused: it returned NULL, and not because it was a free or asked for nothing.
  bool failed() const { return traits(kind).allocates && tag == 0 && bytes() != 0; }
};

}  // namespace cmt
