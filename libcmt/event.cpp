#include "cmt/event.h"

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

}  // namespace cmt
