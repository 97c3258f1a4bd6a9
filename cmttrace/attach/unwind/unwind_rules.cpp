// Rules of .eh_frame ("System V ABI", AMD64 supplement, 3.7; LSB core 10.6; DWARF 5, 6.4), read from the memory of the
// process that is stopped, so that no file need be there.
//
//     .eh_frame_hdr   a table, sorted: where a function begins, and where its entry (FDE) is
//     FDE             its CIE, its addresses, and a program for a small machine
//     CIE             what its FDEs share: factors, encodings, the first part of the program
//
// The program is executed up to the pc that is asked about. It makes a row of rules: how the canonical frame address
// (CFA) is found, mostly rsp or rbp and an offset, and where each register of the caller is saved, mostly at the CFA
// and an offset.
//
// A few hundred instructions and a dozen reads for a frame: some 3 us. Pages of tables are kept, so a second look at a
// function costs no system call.
#include "cmttrace/attach/unwind/unwind_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cmttrace/attach/unwind/dwarf_expression.h"

namespace cmt::attach {
namespace {

enum Encoding : std::uint8_t { relative_sdata4 = 0x1b, data_relative_sdata4 = 0x3b, udata4 = 0x03, omit = 0xff };

/// How a register of the caller is found.
struct Rule {
  enum class Kind {
    same,
    undefined,
    offset,
    value_offset,
    in_register,
    expression,
    value_expression
  } kind = Kind::same;
  std::int64_t offset = 0;  ///< from the CFA; or a register's number
  std::uint64_t expression = 0, expression_bytes = 0;
};

struct Row {
  Rule cfa;  ///< in_register: `expression` is the register, `offset` is added; or value_expression
  std::array<Rule, FrameRegisters::count> registers;
};

struct CommonEntry {
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint8_t encoding = 0;
  bool has_augmentation = false, is_signal_frame = false;
  std::uint64_t program = 0, end = 0;
};

struct Entry {
  CommonEntry common;
  std::uint64_t begin = 0, size = 0;  ///< of the function
  std::uint64_t program = 0, end = 0;
};

/// The length of an entry and where it ends; nothing at the end of the section, and for 64-bit DWARF.
std::optional<std::uint64_t> end_of_entry(RemoteCursor& at) {
  const auto length = at.take<std::uint32_t>();
  if (length == 0 || length >= 0xfffffff0) return std::nullopt;
  return at.address() + length;
}

std::optional<CommonEntry> read_common(const RemoteMemory& memory, std::uint64_t address) {
  RemoteCursor at(memory, address);
  CommonEntry common;
  const auto end = end_of_entry(at);
  if (!end || at.take<std::uint32_t>() != 0) return std::nullopt;
  common.end = *end;
  const auto version = at.take<std::uint8_t>();
  std::string augmentation;
  for (char c = at.take<char>(); c != 0 && augmentation.size() < 8; c = at.take<char>()) augmentation += c;
  common.code_factor = at.take_unsigned();
  common.data_factor = at.take_signed();
  const std::uint64_t return_register = version == 1 ? at.take<std::uint8_t>() : at.take_unsigned();
  if (return_register != FrameRegisters::return_address) return std::nullopt;
  common.program = at.address();
  for (const char c : augmentation) {
    if (c == 'z') {
      common.has_augmentation = true;
      const std::uint64_t bytes = at.take_unsigned();
      common.program = at.address() + bytes;
    } else if (c == 'R') {
      common.encoding = at.take<std::uint8_t>();
    } else if (c == 'L') {
      at.take<std::uint8_t>();
    } else if (c == 'P') {
      const auto encoding = at.take<std::uint8_t>();
      at.skip((encoding & 7) == 3 ? 4 : 8);
    } else if (c == 'S') {
      common.is_signal_frame = true;
    } else if (c != 'B') {
      return std::nullopt;
    }
  }
  return at.is_good() ? std::optional<CommonEntry>(common) : std::nullopt;
}

std::optional<Entry> read_entry(const RemoteMemory& memory, std::uint64_t address) {
  RemoteCursor at(memory, address);
  Entry entry;
  const auto end = end_of_entry(at);
  if (!end) return std::nullopt;
  entry.end = *end;
  const std::uint64_t here = at.address();
  const auto back = at.take<std::uint32_t>();
  const auto common = read_common(memory, here - back);
  if (!common || common->encoding != relative_sdata4) return std::nullopt;
  entry.common = *common;
  const std::uint64_t begin_at = at.address();
  entry.begin = begin_at + static_cast<std::uint64_t>(std::int64_t{at.take<std::int32_t>()});
  entry.size = at.take<std::uint32_t>();
  if (common->has_augmentation) {
    const std::uint64_t bytes = at.take_unsigned();
    at.skip(bytes);
  }
  entry.program = at.address();
  return at.is_good() ? std::optional<Entry>(entry) : std::nullopt;
}

/// The entry of the function that an address is in.
std::optional<Entry> find_entry(const RemoteMemory& memory, const Module& module, std::uint64_t address) {
  const std::uint64_t table = module.unwind_table;
  RemoteCursor at(memory, table);
  const auto version = at.take<std::uint8_t>(), frame_encoding = at.take<std::uint8_t>(),
             count_encoding = at.take<std::uint8_t>(), table_encoding = at.take<std::uint8_t>();
  if (table == 0 || version != 1 || frame_encoding == omit || count_encoding != udata4 ||
      table_encoding != data_relative_sdata4) {
    return std::nullopt;
  }
  at.skip((frame_encoding & 7) == 3 ? 4 : 8);
  std::uint64_t low = 0, high = at.take<std::uint32_t>();
  const std::uint64_t entries = at.address();
  struct Pair {
    std::int32_t begin, entry;
  };
  const auto wanted = static_cast<std::int64_t>(address - table);
  std::optional<Pair> found;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto pair = memory.read_kept<Pair>(entries + middle * sizeof(Pair));
    if (!pair) return std::nullopt;
    if (pair->begin <= wanted) {
      found = pair;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!found) return std::nullopt;
  const auto entry = read_entry(memory, table + static_cast<std::uint64_t>(std::int64_t{found->entry}));
  return entry && address - entry->begin < entry->size ? entry : std::nullopt;
}

/// Executes the programs of CIE and FDE.
class RuleMachine {
 public:
  RuleMachine(const RemoteMemory& memory, const Entry& entry, std::uint64_t pc)
      : memory_(memory), common_(entry.common), location_(entry.begin), pc_(pc) {}

  /// False where an instruction is not known.
  bool execute(std::uint64_t program, std::uint64_t end) {
    RemoteCursor at(memory_, program);
    while (at.is_good() && at.address() < end && location_ <= pc_) {
      if (!step(at)) return false;
    }
    return at.is_good();
  }

  void keep_as_initial() { initial_ = row_; }
  const Row& row() const { return row_; }

 private:
  bool step(RemoteCursor& at) {
    const auto code = at.take<std::uint8_t>();
    const std::uint64_t low = code & 0x3f;
    switch (code >> 6) {
      case 1:  // DW_CFA_advance_loc
        advance(low);
        return true;
      case 2:  // DW_CFA_offset
        set(low, {Rule::Kind::offset, scaled(at.take_unsigned())});
        return true;
      case 3:  // DW_CFA_restore
        if (low < row_.registers.size()) row_.registers[low] = initial_.registers[low];
        return true;
      default:
        return step_rare(code, at);
    }
  }

  bool step_rare(std::uint8_t code, RemoteCursor& at) {
    switch (code) {
      case 0x00:  // DW_CFA_nop
        return true;
      case 0x02:  // DW_CFA_advance_loc1, 2, 4
        advance(at.take<std::uint8_t>());
        return true;
      case 0x03:
        advance(at.take<std::uint16_t>());
        return true;
      case 0x04:
        advance(at.take<std::uint32_t>());
        return true;
      case 0x0a:  // DW_CFA_remember_state
        remembered_.push_back(row_);
        return remembered_.size() < 64;
      case 0x0b:  // DW_CFA_restore_state
        if (remembered_.empty()) return false;
        row_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x2e:  // DW_CFA_GNU_args_size
        at.take_unsigned();
        return true;
      default:
        return code >= 0x0c && code <= 0x13 && code != 0x10 ? step_cfa(code, at) : step_register(code, at);
    }
  }

  /// DW_CFA_def_cfa, _register, _offset, _expression, def_cfa_sf, def_cfa_offset_sf.
  bool step_cfa(std::uint8_t code, RemoteCursor& at) {
    Rule& cfa = row_.cfa;
    if (code == 0x0f) {
      const std::uint64_t bytes = at.take_unsigned();
      cfa = {Rule::Kind::value_expression, 0, at.address(), bytes};
      at.skip(bytes);
      return true;
    }
    if (code == 0x11) {  // DW_CFA_offset_extended_sf
      const std::uint64_t number = at.take_unsigned();
      set(number, {Rule::Kind::offset, at.take_signed() * common_.data_factor});
      return true;
    }
    if (code == 0x0c || code == 0x0d || code == 0x12)
      cfa = {Rule::Kind::in_register, cfa.offset, at.take_unsigned(), 0};
    if (code == 0x0c || code == 0x0e) cfa.offset = static_cast<std::int64_t>(at.take_unsigned());
    if (code == 0x12 || code == 0x13) cfa.offset = at.take_signed() * common_.data_factor;
    return true;
  }

  bool step_register(std::uint8_t code, RemoteCursor& at) {
    const std::uint64_t number = at.take_unsigned();
    switch (code) {
      case 0x05:  // DW_CFA_offset_extended
        set(number, {Rule::Kind::offset, scaled(at.take_unsigned())});
        return true;
      case 0x06:  // DW_CFA_restore_extended
        if (number < row_.registers.size()) row_.registers[number] = initial_.registers[number];
        return true;
      case 0x07:  // DW_CFA_undefined
        set(number, {Rule::Kind::undefined});
        return true;
      case 0x08:  // DW_CFA_same_value
        set(number, {Rule::Kind::same});
        return true;
      case 0x09:  // DW_CFA_register
        set(number, {Rule::Kind::in_register, static_cast<std::int64_t>(at.take_unsigned())});
        return true;
      case 0x14:  // DW_CFA_val_offset
        set(number, {Rule::Kind::value_offset, scaled(at.take_unsigned())});
        return true;
      case 0x10:  // DW_CFA_expression, DW_CFA_val_expression
      case 0x16: {
        const std::uint64_t bytes = at.take_unsigned();
        set(number, {code == 0x10 ? Rule::Kind::expression : Rule::Kind::value_expression, 0, at.address(), bytes});
        at.skip(bytes);
        return true;
      }
      default:
        return false;
    }
  }

  std::int64_t scaled(std::uint64_t offset) const { return static_cast<std::int64_t>(offset) * common_.data_factor; }
  void advance(std::uint64_t units) { location_ += units * common_.code_factor; }
  void set(std::uint64_t number, const Rule& rule) {
    if (number < row_.registers.size()) row_.registers[number] = rule;
  }

  const RemoteMemory& memory_;
  const CommonEntry& common_;
  std::uint64_t location_;
  const std::uint64_t pc_;
  Row row_, initial_;
  std::vector<Row> remembered_;
};

std::optional<std::uint64_t> cfa_of(const RemoteMemory& memory, const Rule& rule, const FrameRegisters& frame) {
  if (rule.kind == Rule::Kind::value_expression)
    return evaluate(memory, {rule.expression, rule.expression_bytes}, frame.values, std::nullopt);
  if (rule.kind != Rule::Kind::in_register || rule.expression >= frame.values.size()) return std::nullopt;
  return frame.values[rule.expression] + static_cast<std::uint64_t>(rule.offset);
}

/// A register of the caller.
std::optional<std::uint64_t> value_of(const RemoteMemory& memory, const Rule& rule, const FrameRegisters& frame,
                                      std::size_t number, std::uint64_t cfa) {
  const std::uint64_t at = cfa + static_cast<std::uint64_t>(rule.offset);
  switch (rule.kind) {
    case Rule::Kind::offset:
      return memory.read<std::uint64_t>(at);
    case Rule::Kind::value_offset:
      return at;
    case Rule::Kind::in_register:
      if (static_cast<std::uint64_t>(rule.offset) >= frame.values.size()) return std::nullopt;
      return frame.values[static_cast<std::size_t>(rule.offset)];
    case Rule::Kind::expression: {
      const auto place = evaluate(memory, {rule.expression, rule.expression_bytes}, frame.values, cfa);
      return place ? memory.read<std::uint64_t>(*place) : std::nullopt;
    }
    case Rule::Kind::value_expression:
      return evaluate(memory, {rule.expression, rule.expression_bytes}, frame.values, cfa);
    default:
      return number == FrameRegisters::rsp ? cfa : frame.values[number];
  }
}

}  // namespace

std::optional<Caller> find_caller(const RemoteMemory& memory, const Module& module, const FrameRegisters& frame,
                                  bool is_interrupted) {
  const std::uint64_t pc = frame.pc() - (is_interrupted ? 0 : 1);
  auto entry = find_entry(memory, module, pc);
  // The trampoline of signals is returned to and not called: the instruction before it is another function's.
  const auto exact = find_entry(memory, module, frame.pc());
  if (exact && exact->common.is_signal_frame) entry = exact;
  if (!entry) return std::nullopt;
  RuleMachine machine(memory, *entry, entry->common.is_signal_frame ? frame.pc() : pc);
  if (!machine.execute(entry->common.program, entry->common.end)) return std::nullopt;
  machine.keep_as_initial();
  if (!machine.execute(entry->program, entry->end)) return std::nullopt;
  const Row& row = machine.row();
  Caller caller;
  caller.was_signal_frame = entry->common.is_signal_frame;
  caller.is_outermost = row.registers[FrameRegisters::return_address].kind == Rule::Kind::undefined;
  if (caller.is_outermost) return caller;
  const auto cfa = cfa_of(memory, row.cfa, frame);
  if (!cfa) return std::nullopt;
  for (std::size_t i = 0; i < frame.values.size(); ++i) {
    const auto value = value_of(memory, row.registers[i], frame, i, *cfa);
    if (!value) return std::nullopt;
    caller.registers.values[i] = *value;
  }
  if (row.registers[FrameRegisters::return_address].kind == Rule::Kind::same) return std::nullopt;
  return caller;
}

}  // namespace cmt::attach
