#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cmt::output {

struct TerminalSize {
  std::size_t rows = 24;
  std::size_t columns = 80;

  bool operator==(const TerminalSize&) const = default;
};

/// The size of a descriptor's terminal; 24 rows of 80 columns where it is not known.
TerminalSize terminal_size(int fd);

/// The first `width` code points of a text; each counts as one column.
std::string_view cut_to_width(std::string_view text, std::size_t width);

/// The last `width` numbers as columns of eight heights, from 0 up to the largest of them: "▁▂▅█". UTF-8, one code
/// point for each number; fewer numbers give a shorter line.
std::string sparkline(std::span<const std::uint64_t> numbers, std::size_t width);

}  // namespace cmt::output
