#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cmt/event.h"

namespace trace2cmt {

/// A function's name in a log, as in `malloc(10)`, `memalign(al 64, size 128)` or `_ZdlPvm(0x562f, 4, 0)`, with its
/// kind and the meaning of its arguments.
struct CallName {
  std::string_view name;
  cmt::Kind kind;
  /// A letter for each argument: p the block given, s size, c count, a alignment. Further arguments are ignored.
  std::string_view arguments;
};

/// Knows the functions of malloc's family, and operator new and delete by their mangled names; nullptr for all others.
const CallName* find_call(std::string_view name);

/// The arguments of a call, as numbers.
struct Arguments {
  std::array<std::uint64_t, 6> values{};
  std::size_t count = 0;
  bool is_closed = false;  ///< the closing parenthesis was there
};

/// Takes arguments and the closing parenthesis off a line. The last word of each is its value, so that `size 128` is
/// 128. False where one of the first six is no number.
bool take_arguments(std::string_view& line, Arguments& arguments);

/// Takes a number off a line for each argument of a call, between blanks or commas. The block given is hexadecimal, the
/// others are decimal. False where one is missing or no number.
bool take_plain_arguments(std::string_view& line, const CallName& call, Arguments& arguments);

/// Makes the event of a call, without its result. False where an argument is missing.
bool event_of(const CallName& call, const Arguments& arguments, cmt::Event& event);

}  // namespace trace2cmt
