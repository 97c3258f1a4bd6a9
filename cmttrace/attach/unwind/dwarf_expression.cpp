#include "cmttrace/attach/unwind/dwarf_expression.h"

#include <utility>
#include <vector>

namespace cmt::attach {
namespace {

using Stack = std::vector<std::uint64_t>;

std::optional<std::uint64_t> pop(Stack& stack) {
  if (stack.empty()) return std::nullopt;
  const std::uint64_t value = stack.back();
  stack.pop_back();
  return value;
}

/// Operations on the two values on top.
std::optional<std::uint64_t> combine(std::uint8_t code, std::uint64_t a, std::uint64_t b) {
  const auto signed_a = static_cast<std::int64_t>(a), signed_b = static_cast<std::int64_t>(b);
  switch (code) {
    case 0x1a:  // DW_OP_and
      return a & b;
    case 0x1c:  // DW_OP_minus
      return a - b;
    case 0x21:  // DW_OP_or
      return a | b;
    case 0x22:  // DW_OP_plus
      return a + b;
    case 0x24:  // DW_OP_shl
      return b < 64 ? a << b : 0;
    case 0x25:  // DW_OP_shr
      return b < 64 ? a >> b : 0;
    case 0x2a:  // DW_OP_ge
      return signed_a >= signed_b ? 1 : 0;
    case 0x2d:  // DW_OP_lt
      return signed_a < signed_b ? 1 : 0;
    default:
      return std::nullopt;
  }
}

/// What an operation that takes nothing from the stack pushes.
std::optional<std::uint64_t> constant(std::uint8_t code, RemoteCursor& at, std::span<const std::uint64_t> registers) {
  if (code >= 0x30 && code <= 0x4f) return code - 0x30u;  // DW_OP_lit0...
  if (code >= 0x70 && code <= 0x8f) {                     // DW_OP_breg0...
    const std::size_t number = code - 0x70u;
    const std::int64_t offset = at.take_signed();
    return number < registers.size() ? std::optional(registers[number] + static_cast<std::uint64_t>(offset))
                                     : std::nullopt;
  }
  switch (code) {
    case 0x08:  // DW_OP_const1u, 1s, 2u, 2s, 4u, 4s, 8u
      return at.take<std::uint8_t>();
    case 0x09:
      return static_cast<std::uint64_t>(std::int64_t{at.take<std::int8_t>()});
    case 0x0a:
      return at.take<std::uint16_t>();
    case 0x0b:
      return static_cast<std::uint64_t>(std::int64_t{at.take<std::int16_t>()});
    case 0x0c:
      return at.take<std::uint32_t>();
    case 0x0d:
      return static_cast<std::uint64_t>(std::int64_t{at.take<std::int32_t>()});
    case 0x0e:
      return at.take<std::uint64_t>();
    case 0x10:  // DW_OP_constu, consts
      return at.take_unsigned();
    case 0x11:
      return static_cast<std::uint64_t>(at.take_signed());
    default:
      return std::nullopt;
  }
}

/// False where the operation is not known.
bool execute(std::uint8_t code, RemoteCursor& at, std::span<const std::uint64_t> registers, const RemoteMemory& memory,
             Stack& stack) {
  if (const auto value = constant(code, at, registers)) {
    stack.push_back(*value);
    return true;
  }
  const auto top = pop(stack);
  if (!top) return false;
  std::optional<std::uint64_t> result;
  if (code == 0x06) {  // DW_OP_deref
    result = memory.read<std::uint64_t>(*top);
  } else if (code == 0x12) {  // DW_OP_dup
    stack.push_back(*top);
    result = top;
  } else if (code == 0x23) {  // DW_OP_plus_uconst
    result = *top + at.take_unsigned();
  } else if (const auto below = pop(stack)) {
    result = combine(code, *below, *top);
  }
  if (result) stack.push_back(*result);
  return result.has_value();
}

}  // namespace

std::pair<std::uint64_t, unsigned> RemoteCursor::take_number() {
  std::uint64_t value = 0;
  unsigned bits = 0;
  for (std::uint8_t byte = 0x80; (byte & 0x80) != 0 && bits < 64; bits += 7) {
    byte = take<std::uint8_t>();
    value |= std::uint64_t{byte & 0x7fu} << bits;
  }
  return {value, bits};
}

std::int64_t RemoteCursor::take_signed() {
  auto [value, bits] = take_number();
  const bool is_negative = bits < 64 && (value >> (bits - 1) & 1) != 0;
  if (is_negative) value |= ~std::uint64_t{0} << bits;
  return static_cast<std::int64_t>(value);
}

std::optional<std::uint64_t> evaluate(const RemoteMemory& memory, RemoteBytes expression,
                                      std::span<const std::uint64_t> registers, std::optional<std::uint64_t> pushed) {
  constexpr std::size_t operations_max = 1000;
  Stack stack;
  if (pushed) stack.push_back(*pushed);
  RemoteCursor at(memory, expression.address);
  for (std::size_t i = 0; at.address() < expression.address + expression.bytes; ++i) {
    const auto code = at.take<std::uint8_t>();
    if (i == operations_max || !execute(code, at, registers, memory, stack) || !at.is_good()) return std::nullopt;
  }
  return pop(stack);
}

}  // namespace cmt::attach
