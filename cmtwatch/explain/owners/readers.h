/// The readers that find_owners asks, one after the other, and the memory that they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cmtwatch/explain/owners/owners.h"

namespace cmt::watch::explain {

/// Memory whose owner is not known yet.
class Unclaimed {
 public:
  Unclaimed(AddressSpace& memory, const std::vector<Range>& ranges);

  AddressSpace& memory() const { return memory_; }
  /// By address, without overlap; neighbours are of two mappings.
  const std::vector<Range>& ranges() const { return ranges_; }
  bool contains(std::uint64_t address) const;

  /// Takes what is still unclaimed of some ranges, in any order, and returns it in whole pages, by address.
  std::vector<Range> take(std::vector<Range> wanted);

  /// The first bytes, at most 4096, of a place. They are read with those of many others at once.
  using UseHead = std::function<void(std::uint64_t address, std::span<const std::uint8_t> head)>;
  /// Reads the head of each multiple of `step`, a multiple of 4096, that lies on a resident page.
  void each_head(std::uint64_t step, std::size_t bytes, const UseHead& use) const;

  /// Is a program or library of this name mapped?
  bool has_file(std::string_view part_of_name) const;

 private:
  AddressSpace& memory_;
  std::vector<Range> ranges_;
};

/// An integer in bytes that were read; 0 beyond their end.
template <class T>
T read_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof value <= bytes.size() - offset)
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Each reader returns its owner with ranges that may reach beyond the unclaimed ones; nullopt: it found nothing.
using Reader = std::optional<OwnedMemory> (*)(const Unclaimed& unclaimed);

std::optional<OwnedMemory> read_mimalloc_segments(const Unclaimed& unclaimed);
std::optional<OwnedMemory> read_zend_chunks(const Unclaimed& unclaimed);
std::optional<OwnedMemory> read_python_pools(const Unclaimed& unclaimed);

// The likely ones.
std::optional<OwnedMemory> find_v8_pages(const Unclaimed& unclaimed);
std::optional<OwnedMemory> find_ruby_pages(const Unclaimed& unclaimed);
std::optional<OwnedMemory> find_java_heap(const Unclaimed& unclaimed);
std::optional<OwnedMemory> find_java_code(const Unclaimed& unclaimed);
std::optional<OwnedMemory> find_go_heap(const Unclaimed& unclaimed);

}  // namespace cmt::watch::explain
