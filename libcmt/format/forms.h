// The forms of events in the core stream, and the prefix code of the forms. forms.cpp explains the code.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/coding.h"

namespace cmt::format {

/// How an event is written in the core stream: its operation, and the encoding of each operand. Each block lists its
/// forms, and gives each a prefix code. The code is in the low bits of the event's first number.
struct Form {
  /// An operation is a Kind, thread_switch, tag_skip or next_run. The last is an event that reports a run of pages like
  /// the run before. The table of forms describes the operations from `described` on.
  enum : std::uint8_t { thread_switch = 25, tag_skip = 26, described = 27, next_run = 33 };

  std::uint8_t operation = 0;
  bool by_delta = false;  ///< the block given is encoded by its difference from the one given last
  bool null = false;      ///< the result is NULL
  bool wide = false;     ///< the first operand is a number of its own, since it is too large to share one with the code
  bool aligned = false;  ///< operator new and delete: the alignment is an operand. Events of pools: the pool is

  KindTraits kind{};                  ///< of the operation, if it is a kind
  std::uint8_t further_operands = 0;  ///< operands beyond those of the traits, without meaning in this version

  static Form of(Kind kind) {
    Form form{static_cast<std::uint8_t>(kind)};
    form.kind = traits(kind);
    form.further_operands = kind == Kind::pool_free ? 1 : 0;
    return form;
  }

  /// A form as the table of forms has it. Throws WireError.
  static Form take(Cursor& cursor);
  void put(std::string& out) const;

  /// Without the description of a kind.
  constexpr std::uint32_t wire() const {
    return (operation & 31u) | by_delta << 5 | null << 6 | wide << 7 | aligned << 8 | (operation >> 5) << 9;
  }

  /// How many operands follow, the first one included; a label counts as its length.
  unsigned operands() const {
    if (is_control()) return 1;
    return unsigned{kind.is_given()} + kind.sizes + kind.counts + (kind.aligns || aligned) + further_operands +
           kind.labels;
  }

  /// Whether it changes the state, and is no event.
  bool is_control() const { return operation == thread_switch || operation == tag_skip; }
  bool is_known_kind() const { return is_known(static_cast<Kind>(operation)); }

 private:
  bool is_valid() const;
};

/// Values that wire() may have.
inline constexpr unsigned wire_forms_limit = kind_limit << 4;

inline constexpr unsigned code_bits_limit = 7;
inline constexpr unsigned forms_limit = 1 << code_bits_limit;

/// The number of first operands of a form, by their significant bits.
using BitHistogram = std::array<std::uint32_t, 65>;

/// The lengths of the prefix code that makes the block's first numbers shortest in bytes. See forms.cpp.
std::vector<std::uint8_t> cheapest_code(const std::vector<BitHistogram>& forms);

/// The canonical prefix code of given lengths, least significant bit first.
std::vector<std::uint8_t> canonical_codes(const std::vector<std::uint8_t>& lengths);

/// The list of forms at the head of a core stream.
struct FormTable {
  std::vector<Form> forms;
  std::vector<std::uint8_t> lengths;

  void put(std::string& out) const;
  /// `sampled`: the trace is. Only such a trace has the kinds of sampling.
  static FormTable take(Cursor& cursor, bool sampled);
};

}  // namespace cmt::format
