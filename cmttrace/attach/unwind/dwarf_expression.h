#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "cmttrace/attach/remote_memory.h"

namespace cmt::attach {

/// Reads numbers one after the other from another process's memory that does not change. After a failure all is 0.
class RemoteCursor {
 public:
  RemoteCursor(const RemoteMemory& memory, std::uint64_t address) : memory_(memory), address_(address) {}

  template <class T>
  T take() {
    const auto value = is_good_ ? memory_.read_kept<T>(address_) : std::nullopt;
    is_good_ = value.has_value();
    address_ += sizeof(T);
    return value.value_or(T{});
  }
  /// LEB128 numbers.
  std::uint64_t take_unsigned() { return take_number().first; }
  std::int64_t take_signed();

  void skip(std::uint64_t bytes) { address_ += bytes; }
  std::uint64_t address() const { return address_; }
  bool is_good() const { return is_good_; }

 private:
  /// The bits of a number, and how many there are.
  std::pair<std::uint64_t, unsigned> take_number();

  const RemoteMemory& memory_;
  std::uint64_t address_;
  bool is_good_ = true;
};

/// An expression's place in memory.
struct RemoteBytes {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// The value of a DWARF expression (DWARF 5, 2.5), of the operations that rules of frames use: constants, registers,
/// memory, sums, comparisons. `pushed`: what lies on the stack at the begin. Nothing for another operation.
std::optional<std::uint64_t> evaluate(const RemoteMemory& memory, RemoteBytes expression,
                                      std::span<const std::uint64_t> registers, std::optional<std::uint64_t> pushed);

}  // namespace cmt::attach
