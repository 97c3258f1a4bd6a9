// Takes numbers, addresses and calls off the begin of a line of a foreign log.

#include "toolkit/logs/line_parts.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cmt::logs {
namespace {

using cmt::Kind;

/// size_t is mangled as m if it has 64 bits, as j if it has 32.
constexpr std::array call_names{
    CallName{"malloc", Kind::malloc, "s"},
    CallName{"free", Kind::free, "p"},
    CallName{"realloc", Kind::realloc, "ps"},
    CallName{"calloc", Kind::calloc, "cs"},
    CallName{"_Znwm", Kind::operator_new, "s"},
    CallName{"_ZdlPv", Kind::operator_delete, "p"},
    CallName{"_ZdlPvm", Kind::operator_delete_sized, "ps"},
    CallName{"_Znam", Kind::operator_new_array, "s"},
    CallName{"_ZdaPv", Kind::operator_delete_array, "p"},
    CallName{"_ZdaPvm", Kind::operator_delete_array_sized, "ps"},
    CallName{"_ZnwmRKSt9nothrow_t", Kind::operator_new_nothrow, "s"},
    CallName{"_ZnamRKSt9nothrow_t", Kind::operator_new_array_nothrow, "s"},
    CallName{"_ZnwmSt11align_val_t", Kind::operator_new, "sa"},
    CallName{"_ZnamSt11align_val_t", Kind::operator_new_array, "sa"},
    CallName{"_ZnwmSt11align_val_tRKSt9nothrow_t", Kind::operator_new_nothrow, "sa"},
    CallName{"_ZnamSt11align_val_tRKSt9nothrow_t", Kind::operator_new_array_nothrow, "sa"},
    CallName{"_ZdlPvRKSt9nothrow_t", Kind::operator_delete, "p"},
    CallName{"_ZdaPvRKSt9nothrow_t", Kind::operator_delete_array, "p"},
    CallName{"_ZdlPvSt11align_val_t", Kind::operator_delete, "pa"},
    CallName{"_ZdaPvSt11align_val_t", Kind::operator_delete_array, "pa"},
    CallName{"_ZdlPvmSt11align_val_t", Kind::operator_delete_sized, "psa"},
    CallName{"_ZdaPvmSt11align_val_t", Kind::operator_delete_array_sized, "psa"},
    CallName{"_ZdlPvSt11align_val_tRKSt9nothrow_t", Kind::operator_delete, "pa"},
    CallName{"_ZdaPvSt11align_val_tRKSt9nothrow_t", Kind::operator_delete_array, "pa"},
    CallName{"_Znwj", Kind::operator_new, "s"},
    CallName{"_Znaj", Kind::operator_new_array, "s"},
    CallName{"_ZdlPvj", Kind::operator_delete_sized, "ps"},
    CallName{"_ZdaPvj", Kind::operator_delete_array_sized, "ps"},
    CallName{"_ZnwjRKSt9nothrow_t", Kind::operator_new_nothrow, "s"},
    CallName{"_ZnajRKSt9nothrow_t", Kind::operator_new_array_nothrow, "s"},
    CallName{"memalign", Kind::memalign, "as"},
    CallName{"aligned_alloc", Kind::aligned_alloc, "as"},
    CallName{"posix_memalign", Kind::posix_memalign, "as"},
    CallName{"reallocarray", Kind::reallocarray, "pcs"},
    CallName{"valloc", Kind::valloc, "s"},
    CallName{"pvalloc", Kind::pvalloc, "s"},
    CallName{"cfree", Kind::free, "p"},
    CallName{"free_sized", Kind::free_sized, "ps"},
    CallName{"free_aligned_sized", Kind::free_aligned_sized, "pas"},
};

/// The kind of the same call without a size, for logs that leave the size out.
Kind without_size(Kind kind) {
  const bool is_sized_delete = kind == Kind::operator_delete_sized || kind == Kind::operator_delete_array_sized;
  return is_sized_delete ? static_cast<Kind>(static_cast<int>(kind) - 1) : kind;
}

/// The mangled name of `operator new(unsigned long)` and its kin; empty for any other.
std::string mangled_operator(std::string_view name) {
  struct Part {
    std::string_view shown, mangled;
  };
  constexpr std::array operators{Part{"operator new(", "_Znw"}, Part{"operator new[](", "_Zna"},
                                 Part{"operator delete(", "_Zdl"}, Part{"operator delete[](", "_Zda"}};
  constexpr std::array types{Part{"unsigned long", "m"}, Part{"unsigned int", "j"}, Part{"void*", "Pv"},
                             Part{"std::align_val_t", "St11align_val_t"},
                             Part{"std::nothrow_t const&", "RKSt9nothrow_t"}};
  const auto begins_name = [&](const Part& part) { return name.starts_with(part.shown); };
  std::string mangled;
  const auto* part = std::find_if(operators.begin(), operators.end(), begins_name);
  if (part == operators.end()) return mangled;
  for (mangled = part->mangled, name.remove_prefix(part->shown.size()); name != ")"; take_prefix(name, ", ")) {
    part = std::find_if(types.begin(), types.end(), begins_name);
    if (part == types.end()) return {};
    mangled += part->mangled;
    name.remove_prefix(part->shown.size());
  }
  return mangled;
}

}  // namespace

const CallName* find_call(std::string_view name) {
  if (name.starts_with("operator ")) return find_call(mangled_operator(name));
  const auto* found =
      std::find_if(call_names.begin(), call_names.end(), [&](const CallName& c) { return c.name == name; });
  return found == call_names.end() ? nullptr : found;
}

bool take_arguments(std::string_view& line, Arguments& arguments) {
  arguments = {};
  const std::size_t length = std::min(line.find_first_of(")<"), line.size());
  std::string_view inside = line.substr(0, length);
  if (inside.ends_with("(nil")) {
    // ltrace writes NULL as (nil).
    inside = line.substr(0, std::min(line.find_first_of(")<", length + 1), line.size()));
  }
  arguments.is_closed = inside.size() < line.size() && line[inside.size()] == ')';
  line.remove_prefix(inside.size() + (arguments.is_closed ? 1 : 0));
  inside = trimmed(inside);
  while (!inside.empty() && arguments.count < arguments.values.size()) {
    std::string_view argument;
    if (!take_until(inside, ',', argument)) argument = std::exchange(inside, {});
    if (!whole_c_number(take_last_word(argument), arguments.values[arguments.count++])) return false;
  }
  return true;
}

bool take_plain_arguments(std::string_view& line, const CallName& call, Arguments& arguments) {
  for (const char meaning : call.arguments) {
    while (!line.empty() && (is_blank(line.front()) || line.front() == ',')) line.remove_prefix(1);
    const std::string_view word = line.substr(0, std::min(line.find_first_of(", \t\r"), line.size()));
    line.remove_prefix(word.size());
    std::uint64_t& value = arguments.values[arguments.count++];
    if (!(meaning == 'p' ? whole_address(word, value) : whole_number(word, value))) return false;
  }
  return true;
}

bool event_of(const CallName& call, const Arguments& arguments, cmt::Event& event) {
  event = {.kind = call.kind};
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    if (i == arguments.count) {
      // Some tools show only the block of operator delete.
      event.kind = without_size(event.kind);
      return i == 1 && cmt::traits(event.kind).may_align;
    }
    const std::uint64_t value = arguments.values[i];
    if (call.arguments[i] == 'p') event.old_address = value;
    if (call.arguments[i] == 's') event.size = value;
    if (call.arguments[i] == 'c') event.count = value;
    if (call.arguments[i] == 'a') event.alignment = value;
  }
  return true;
}

}  // namespace cmt::logs
