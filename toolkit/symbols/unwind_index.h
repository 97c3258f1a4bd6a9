#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

struct Elf;

namespace cmt::symbols {

/// Where the functions of a program without symbols begin: every function has an entry in .eh_frame, for exceptions,
/// and .eh_frame_hdr lists those by address. So the addresses within one function can be told from those of another.
class UnwindIndex {
 public:
  /// Borrows `elf`, which may be null. Other encodings than compilers for x86-64 use give an empty index.
  explicit UnwindIndex(Elf* elf);

  /// Where the function begins that an address of the file is in. Nothing where it is in none.
  std::optional<std::uint64_t> function_begin(std::uint64_t address) const;

 private:
  struct Segment {
    std::uint64_t address;
    std::string_view bytes;
  };
  struct Entry {
    std::uint64_t begin;
    std::uint64_t description;  ///< address of its entry in .eh_frame
  };

  std::string_view bytes_at(std::uint64_t address, std::size_t size) const;
  void read_table(std::uint64_t table, std::string_view bytes);

  std::vector<Segment> segments_;
  std::vector<Entry> entries_;  // by begin
};

}  // namespace cmt::symbols
