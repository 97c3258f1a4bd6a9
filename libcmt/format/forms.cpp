// How a form's code and the first operand share the bytes of one number.
//
// In most traces nearly every event is a malloc or a free. The free gives its block by one of two numbers: the distance
// from the newest block, or the difference from the block given last.
//
// But a C++ program calls operator new, and another program calloc. A fixed layout that favours these three forms would
// cost all others an escape. So each block of the stream lists its forms, each with a prefix code of 1 to 7 bits. In
// the event's first number the code is below the first operand.
//
// Huffman's code is not the best one, because numbers are whole bytes. An operand of 6 bits shares a byte with a code
// of 1 bit, but needs a second byte with a code of 2 bits. If count[w] operands of a form have w bits, a code of length
// l costs sum(count[w] * bytes(w + l)). The lengths have to satisfy Kraft's inequality, sum(2^-l) <= 1. This is a
// knapsack problem over 128 units, solved exactly: cost[u] is the least number of bytes with u units spent. The
// solution takes forms x 128 x 7 steps, which is negligible for a block of 256 Ki events. A block of only malloc and
// free gets the lengths 1, 2, 2: `size << 1`, `distance << 2 | 1`, `delta << 2 | 3`.

#include "libcmt/format/forms.h"

#include <cassert>
#include <limits>

#include "libcmt/format/coding.h"

namespace cmt::format {
namespace {

constexpr unsigned units = 1 << code_bits_limit;
constexpr std::uint64_t infinite = std::numeric_limits<std::uint64_t>::max() / 2;

std::uint64_t cost(const BitHistogram& histogram, unsigned length) {
  std::uint64_t bytes = 0;
  for (unsigned bits = 0; bits < histogram.size(); ++bits) {
    bytes += std::uint64_t{histogram[bits]} * varint_size(bits == 0 ? length : bits + length);
  }
  return bytes;
}

std::uint8_t reversed(unsigned code, unsigned length) {
  assert(code < 1u << length);
  unsigned result = 0;
  for (unsigned i = 0; i < length; ++i) result |= (code >> i & 1) << (length - 1 - i);
  return static_cast<std::uint8_t>(result);
}

/// cost[u] after some of the forms, and the length that the last of them has in that solution.
struct Stage {
  std::array<std::uint64_t, units + 1> cost;
  std::array<std::uint8_t, units + 1> length{};
};

Stage extend(const Stage& before, const BitHistogram& histogram) {
  Stage after;
  after.cost.fill(infinite);
  for (unsigned length = 1; length <= code_bits_limit; ++length) {
    const unsigned share = units >> length;
    const std::uint64_t price = cost(histogram, length);
    for (unsigned spent = 0; spent + share <= units; ++spent) {
      if (before.cost[spent] + price < after.cost[spent + share]) {
        after.cost[spent + share] = before.cost[spent] + price;
        after.length[spent + share] = static_cast<std::uint8_t>(length);
      }
    }
  }
  return after;
}

}  // namespace

std::vector<std::uint8_t> cheapest_code(const std::vector<BitHistogram>& forms) {
  assert(forms.size() <= forms_limit);
  std::vector<Stage> stages(1);
  stages[0].cost.fill(infinite);
  stages[0].cost[0] = 0;
  for (const BitHistogram& form : forms) stages.push_back(extend(stages.back(), form));

  unsigned spent = units;
  for (unsigned u = units; u-- > 0;) {
    if (stages.back().cost[u] < stages.back().cost[spent]) spent = u;
  }
  std::vector<std::uint8_t> lengths(forms.size());
  for (std::size_t i = forms.size(); i-- > 0;) {
    lengths[i] = stages[i + 1].length[spent];
    assert(lengths[i] >= 1 && lengths[i] <= code_bits_limit && units >> lengths[i] <= spent);
    spent -= units >> lengths[i];
  }
  assert(spent == 0);
  return lengths;
}

std::vector<std::uint8_t> canonical_codes(const std::vector<std::uint8_t>& lengths) {
  std::vector<std::uint8_t> codes(lengths.size());
  unsigned code = 0;
  for (unsigned length = 1; length <= code_bits_limit; ++length) {
    code <<= 1;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == length) codes[i] = reversed(code++, length);
    }
  }
  return codes;
}

/// A form may only have the properties that its operation allows.
bool Form::is_valid() const {
  if (kind.releases && kind.names) return false;
  if (operation < described && !is_control() && !is_known_kind()) return false;
  if (operation == next_run && kind.bits() != cmt_names) return false;
  if (operation >= described && is_known_kind() && kind.bits() != traits(static_cast<Kind>(operation)).bits())
    return false;
  return (!by_delta || kind.is_given()) && (!null || kind.allocates) && (!aligned || kind.may_align) &&
         (!wide || operands() != 0);
}

Form Form::take(Cursor& cursor) {
  const std::uint64_t at = cursor.offset();
  const std::uint64_t value = cursor.varint();
  Form form{static_cast<std::uint8_t>((value & 31) | (value >> 9 & 1) << 5), (value & 32) != 0, (value & 64) != 0,
            (value & 128) != 0, (value & 256) != 0};
  if (value < wire_forms_limit && form.operation >= described) {
    form.kind = KindTraits(static_cast<unsigned>(cursor.varint(traits_limit, "a kind's traits")));
    form.further_operands =
        static_cast<std::uint8_t>(cursor.varint(further_operands_limit, "a kind's number of further operands"));
  } else if (!form.is_control()) {
    form.kind = traits(static_cast<Kind>(form.operation));
  }
  if (value >= wire_forms_limit || !form.is_valid()) throw WireError(at, "unknown form " + std::to_string(value));
  return form;
}

void Form::put(std::string& out) const {
  put_varint(out, wire());
  if (operation < described) return;
  put_varint(out, kind.bits());
  put_varint(out, further_operands);
}

void FormTable::put(std::string& out) const {
  assert(forms.size() == lengths.size());
  put_varint(out, forms.size());
  for (std::size_t i = 0; i < forms.size(); ++i) {
    forms[i].put(out);
    put_varint(out, lengths[i]);
  }
}

FormTable FormTable::take(Cursor& cursor, bool sampled) {
  FormTable table;
  const std::uint64_t count = cursor.varint(forms_limit, "the number of forms");
  unsigned spent = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = cursor.offset();
    const Form& form = table.forms.emplace_back(Form::take(cursor));
    if (!sampled && is_of_sampling(static_cast<Kind>(form.operation)))
      throw WireError(at, "a kind of sampled traces, in version 1");
    const std::uint64_t length = cursor.varint(code_bits_limit, "a code's length");
    if (length == 0) throw WireError(at, "a code of no bits");
    table.lengths.push_back(static_cast<std::uint8_t>(length));
    spent += units >> length;
    if (spent > units) throw WireError(at, "more codes than there is room for");
  }
  return table;
}

}  // namespace cmt::format
