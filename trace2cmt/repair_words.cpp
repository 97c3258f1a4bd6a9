#include "repair_words.h"

#include <array>

namespace trace2cmt {
namespace {

struct Words {
  const char* one;
  const char* many;
};

constexpr std::array<Words, cmt::repair_count> repair_words{{
    {"line not understood", "lines not understood"},
    {"free of no block dropped", "frees of no block dropped"},
    {"realloc of no block taken as an allocation", "reallocs of no block taken as allocations"},
    {"order race swapped", "order races swapped"},
    {"block handed out twice and ended first", "blocks handed out twice and ended first"},
    {"misfree", "misfrees"},
    {"event with a contradicting tag dropped", "events with contradicting tags dropped"},
    {"event of an unknown kind replaced", "events of unknown kinds replaced"},
}};

void append(std::string& out, std::uint64_t count, const Words& word) {
  if (count == 0) return;
  out += out.empty() ? ": " : ", ";
  out += std::to_string(count) + " " + (count == 1 ? word.one : word.many);
}

}  // namespace

std::string repairs_by_kind(const cmt::Repairs& repairs) {
  std::string out;
  for (std::size_t i = 0; i < repair_words.size(); ++i) append(out, repairs.by_kind[i], repair_words[i]);
  if (!out.empty()) append(out, repairs.other, {"of another kind", "of other kinds"});
  return out;
}

}  // namespace trace2cmt
