// The names of kinds, repairs and formats, as texts, messages and JSON have them.

#include <cassert>
#include <charconv>
#include <string>

#include "cmt/event.h"
#include "cmt/header.h"

namespace cmt {

std::string_view name(Kind kind) {
  switch (kind) {
#define CMT_KIND(name, number, call, traits) \
  case Kind::name:                           \
    return #name;
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  }
  static const auto numbered = [] {
    std::array<std::string, kind_limit> names;
    for (std::size_t number = 0; number < kind_limit; ++number) names[number] = "kind_" + std::to_string(number);
    return names;
  }();
  const auto number = static_cast<std::size_t>(kind);
  if (number >= kind_limit) return "kind";
  return numbered[number];
}

std::string_view name(Repair repair) {
  static constexpr std::array<std::string_view, repair_count> names{
      "not_understood", "unmatched_free", "unmatched_realloc", "order_race", "double_allocation", "misfree",
      "contradiction",  "unknown_kind",   "overlap",           "time_back",  "other_address",
  };
  assert(static_cast<std::size_t>(repair) < names.size());
  return names[static_cast<std::size_t>(repair)];
}

static std::uint64_t decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

std::uint64_t Header::touched_min() const { return decimal(find("touched_min").value_or("")); }
std::uint64_t Header::sampled() const { return decimal(find("sampled").value_or("")); }

std::string_view name(Format format) {
  static constexpr std::array<std::string_view, 3> names{"text", "cmt", "legacy_cmt"};
  assert(static_cast<std::size_t>(format) < names.size());
  return names[static_cast<std::size_t>(format)];
}

}  // namespace cmt
