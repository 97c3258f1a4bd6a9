#include "cmt/event.h"
#include "cmt/header.h"

namespace cmt {
namespace {

using KindName = std::array<char, 8>;

/// "kind_0" to "kind_63".
constexpr std::array<KindName, kind_limit> names_by_number = [] {
  std::array<KindName, kind_limit> names{};
  for (std::size_t number = 0; number < kind_limit; ++number) {
    KindName& name = names[number];
    std::size_t length = 0;
    for (const char c : {'k', 'i', 'n', 'd', '_'}) name[length++] = c;
    if (number >= 10) name[length++] = static_cast<char>('0' + number / 10);
    name[length] = static_cast<char>('0' + number % 10);
  }
  return names;
}();

}  // namespace

std::string_view name(Kind kind) {
  switch (kind) {
#define CMT_KIND(name, number, call, traits) \
  case Kind::name:                           \
    return #name;
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  }
  const auto number = static_cast<std::size_t>(kind);
  return number < kind_limit ? names_by_number[number].data() : "kind";
}

std::string_view name(Repair repair) {
  static constexpr std::array<std::string_view, repair_count> names{
      "not_understood",    "unmatched_free", "unmatched_realloc", "order_race",
      "double_allocation", "misfree",        "contradiction",     "unknown_kind",
  };
  return names[static_cast<std::size_t>(repair)];
}

std::string_view name(Format format) {
  switch (format) {
    case Format::text:
      return "text";
    case Format::cmt:
      return "cmt";
    case Format::legacy_cmt:
      return "legacy_cmt";
  }
  return "";
}

}  // namespace cmt
