// Finds the closest word by the distance of Damerau and Levenshtein, with each pair of neighbours swapped once at most
// (optimal string alignment).

#include "toolkit/command/suggest.h"

#include <algorithm>
#include <cstddef>

namespace cmt::command {
namespace {

constexpr std::size_t word_length_max = 64;  // a longer word is a path, not a mistyped name

/// How many letters have to be inserted, dropped, replaced or swapped with their neighbour.
std::size_t changes(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      least[i][j] = std::min({replaced, least[i - 1][j] + 1, least[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string closest(std::string_view given, const std::vector<std::string>& known) {
  if (given.empty() || given.size() > word_length_max) return {};
  std::string found;
  std::size_t fewest = std::max<std::size_t>(given.size(), 3) / 3 + 1;
  for (const std::string& word : known) {
    const std::size_t needed = changes(given, word);
    if (needed >= fewest || needed >= word.size()) continue;
    fewest = needed;
    found = word;
  }
  if (!found.empty() || given.size() < 2) return found;
  const auto begins = [&](const std::string& word) { return word.starts_with(given); };
  if (std::count_if(known.begin(), known.end(), begins) != 1) return {};
  return *std::find_if(known.begin(), known.end(), begins);
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known, std::string_view before) {
  const std::string word = closest(given, known);
  return word.empty() ? "" : "; did you mean '" + std::string(before) + word + "'?";
}

}  // namespace cmt::command
