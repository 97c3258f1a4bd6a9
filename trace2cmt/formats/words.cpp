#include "trace2cmt/formats/words.h"

namespace trace2cmt {

bool whole_seconds(std::string_view word, std::uint64_t& ns) {
  constexpr std::uint64_t second_ns = 1'000'000'000;
  std::string_view seconds;
  std::uint64_t whole = 0, fraction = 0;
  if (!take_until(word, '.', seconds) || word.empty() || word.size() > 9) return false;
  if (!whole_number(seconds, whole) || !whole_number(word, fraction)) return false;
  if (whole > std::numeric_limits<std::uint64_t>::max() / second_ns - 1) return false;
  for (std::size_t digits = word.size(); digits < 9; ++digits) fraction *= 10;
  ns = whole * second_ns + fraction;
  return true;
}

}  // namespace trace2cmt
