/// Finds where the functions of a file without symbols begin: each has an entry in .eh_frame, for exceptions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "preload/cfi/cfi.h"

struct Elf;

namespace cmt::symbols {

/// The functions of an ELF file by the table in its .eh_frame_hdr, so that addresses of two functions can be
/// distinguished.
class UnwindIndex {
 public:
  /// Borrows `elf`, which may be null.
  explicit UnwindIndex(Elf* elf);

  /// Returns the begin of the function that an address of the file is in, or nullopt if no entry covers the address.
  std::optional<std::uint64_t> function_begin(std::uint64_t address) const;

 private:
  struct Segment {
    std::uint64_t address;
    std::span<const std::uint8_t> bytes;
  };

  static std::size_t bytes_from(const void* index, std::uint64_t address, const std::uint8_t** bytes);

  std::vector<Segment> segments_;
  std::uint64_t header_ = 0;  // address of .eh_frame_hdr; 0: none
};

}  // namespace cmt::symbols
