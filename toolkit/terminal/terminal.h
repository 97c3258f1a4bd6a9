#pragma once

#include <cstddef>
#include <string_view>

namespace cmt::output {

struct TerminalSize {
  std::size_t rows = 24;
  std::size_t columns = 80;

  bool operator==(const TerminalSize&) const = default;
};

/// Of the terminal that a descriptor is of; 24 rows of 80 columns where it does not say.
TerminalSize terminal_size(int fd);

/// The first `width` code points of a text, each taken for one column.
std::string_view cut_to_width(std::string_view text, std::size_t width);

}  // namespace cmt::output
