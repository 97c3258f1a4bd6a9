#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cmt/event.h"

namespace trace2cmt {

/// A call as several tools write it, `malloc(10)` or `memalign(al 64, size 128)` or `_ZdlPvm(0x562f, 4, 0)`: its kind
/// and which argument is what.
struct CallName {
  std::string_view name;
  cmt::Kind kind;
  /// A letter an argument: p the block given, s size, c count, a alignment, o something else. What is written behind
  /// them is ignored; what is missing at the end stays unknown.
  std::string_view arguments;
};

/// malloc and its kin, and operator new and delete by their mangled names; nullptr for all else.
const CallName* find_call(std::string_view name);

/// What a call's parentheses hold.
struct Arguments {
  std::array<std::uint64_t, 6> values{};
  std::size_t count = 0;
  bool is_closed = false;  ///< its parenthesis was there
};

/// Takes arguments and the parenthesis that ends them; what follows stays. Of each only its last word counts, so that
/// `size 128` is 128. False where one of the first six is no number.
bool take_arguments(std::string_view& line, Arguments& arguments);

/// The event of a call with these arguments, without its result. False where one is missing.
bool event_of(const CallName& call, const Arguments& arguments, cmt::Event& event);

}  // namespace trace2cmt
