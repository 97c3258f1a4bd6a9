#include "preload/program/unwind/cfi.h"

#include <stddef.h>
#include <string.h>

#pragma GCC visibility push(hidden)

enum { saved_rows_max = 4, operands_max = 16 };

// Bytes of a module's information. `at` never passes `end`; a read beyond fails.
struct Reader {
  const uint8_t *at, *end;
  bool failed;
};

static bool has_bytes(struct Reader* in, size_t bytes) {
  if ((size_t)(in->end - in->at) >= bytes) return true;
  in->failed = true;
  in->at = in->end;
  return false;
}

// A signed or unsigned number of 1, 2, 4 or 8 bytes, little endian.
static uint64_t read_number(struct Reader* in, size_t bytes, bool is_signed) {
  uint64_t number = 0;
  if (!has_bytes(in, bytes)) return 0;
  memcpy(&number, in->at, bytes);
  in->at += bytes;
  const unsigned unused = 64 - 8 * (unsigned)bytes;
  return is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

static uint8_t read_byte(struct Reader* in) { return has_bytes(in, 1) ? *in->at++ : 0; }

static uint64_t read_leb(struct Reader* in, bool is_signed) {
  uint64_t number = 0;
  unsigned shift = 0;
  uint8_t byte = 0x80;
  while (byte & 0x80 && !in->failed) {
    byte = read_byte(in);
    if (shift < 64) number |= (uint64_t)(byte & 0x7f) << shift;
    shift += 7;
  }
  if (is_signed && shift < 64 && byte & 0x40) number |= ~(uint64_t)0 << shift;
  return number;
}

static uint64_t read_uleb(struct Reader* in) { return read_leb(in, false); }
static int64_t read_sleb(struct Reader* in) { return (int64_t)read_leb(in, true); }

static void skip(struct Reader* in, uint64_t bytes) {
  if (has_bytes(in, bytes)) in->at += bytes;
}

// Of pointers: the format (low 4 bits), and what they are relative to. No other relation is used on x86-64.
enum { pointer_relative_to_itself = 0x10, pointer_omitted = 0xff };

static uint64_t read_encoded(struct Reader* in, uint8_t encoding) {
  static const uint8_t bytes_of[16] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8, 0, 0, 0};
  const uint64_t place = (uint64_t)(uintptr_t)in->at;
  const uint8_t format = encoding & 15, relation = encoding & 0x70;
  uint64_t value = 0;
  if (encoding == pointer_omitted) return 0;
  if (format == 1)
    value = read_uleb(in);
  else if (format == 9)
    value = (uint64_t)read_sleb(in);
  else if (bytes_of[format])
    value = read_number(in, bytes_of[format], format & 8);
  else
    in->failed = true;
  if (relation == pointer_relative_to_itself)
    value += place;
  else if (relation)
    in->failed = true;
  return value;
}

// A common information entry, and where a function's own information continues it.
struct Entry {
  struct Reader common, own;  // instructions
  uint64_t begin, bytes;      // the function's code
  uint64_t code_align;
  int64_t data_align;
  uint8_t encoding;
  bool has_data, is_signal_frame;
};

// The body of an entry at `at`: its length stands before it.
static struct Reader read_entry(const struct CfiModule* module, uintptr_t at) {
  struct Reader in = {(const uint8_t*)at, (const uint8_t*)module->info_end,
                      at < module->info_begin || at >= module->info_end};
  if (in.failed) return in;
  uint64_t bytes = read_number(&in, 4, false);
  if (bytes == 0xffffffff) bytes = read_number(&in, 8, false);
  if (in.failed || bytes == 0 || bytes > (uint64_t)(in.end - in.at))
    in.failed = true;
  else
    in.end = in.at + bytes;
  return in;
}

static bool read_common(const struct CfiModule* module, uintptr_t at, struct Entry* entry) {
  struct Reader in = read_entry(module, at);
  if (in.failed || read_number(&in, 4, false) != 0) return false;
  const uint8_t version = read_byte(&in);
  const char* letter = (const char*)in.at;
  while (!in.failed && read_byte(&in)) continue;
  if (in.failed || (version != 1 && version != 3)) return false;
  entry->code_align = read_uleb(&in);
  entry->data_align = read_sleb(&in);
  const uint64_t return_register = version == 1 ? read_byte(&in) : read_uleb(&in);
  if (return_register != cfi_return) return false;
  if (*letter == 'z') {
    entry->has_data = true;
    const uint64_t bytes = read_uleb(&in);
    struct Reader data = in;
    skip(&in, bytes);
    data.end = in.at;
    while (*++letter) {
      if (*letter == 'R') entry->encoding = read_byte(&data);
      if (*letter == 'L') read_byte(&data);
      if (*letter == 'P') read_encoded(&data, read_byte(&data) & 0x7f);
      if (*letter == 'S') entry->is_signal_frame = true;
    }
    if (data.failed) return false;
  } else if (*letter) {
    return false;
  }
  entry->common = in;
  return !in.failed;
}

static bool read_function(const struct CfiModule* module, uintptr_t at, struct Entry* entry) {
  struct Reader in = read_entry(module, at);
  const uintptr_t place = (uintptr_t)in.at;
  const uint64_t distance = read_number(&in, 4, false);
  if (in.failed || distance == 0 || distance > place - module->info_begin) return false;
  if (!read_common(module, place - distance, entry)) return false;
  entry->begin = read_encoded(&in, entry->encoding);
  entry->bytes = read_encoded(&in, entry->encoding & 15);
  if (entry->has_data) skip(&in, read_uleb(&in));
  entry->own = in;
  return !in.failed;
}

// .eh_frame_hdr: a sorted table of (begin of function, its entry), relative to the header.
static uintptr_t find_entry(const struct CfiModule* module, uintptr_t address) {
  enum { count_of_4_bytes = 0x03, table_of_4_bytes = 0x3b };
  struct Reader in = {(const uint8_t*)module->header, (const uint8_t*)module->info_end, false};
  if (module->header < module->info_begin || module->header >= module->info_end) return 0;
  const uint8_t version = read_byte(&in), frame_encoding = read_byte(&in), count_encoding = read_byte(&in);
  const uint8_t table_encoding = read_byte(&in);
  if (version != 1 || count_encoding != count_of_4_bytes || table_encoding != table_of_4_bytes) return 0;
  read_encoded(&in, frame_encoding);
  const uint64_t count = read_number(&in, 4, false);
  if (count == 0 || !has_bytes(&in, 8 * count)) return 0;
  const int64_t wanted = (int64_t)(address - module->header);
  int32_t pair[2];
  uint64_t low = 0, high = count;  // the last that does not begin behind `address` is in [low, high)
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    memcpy(pair, in.at + 8 * middle, 8);
    *(pair[0] <= wanted ? &low : &high) = middle;
  }
  memcpy(pair, in.at + 8 * low, 8);
  return pair[0] <= wanted ? module->header + (uintptr_t)(intptr_t)pair[1] : 0;
}

struct Run {
  struct CfiRow* row;
  const struct CfiRow* initial;  // after the common instructions; NULL within them
  struct CfiRow saved[saved_rows_max];
  unsigned rows;
};

static void set_register(struct CfiRow* row, uint64_t number, enum CfiHow how, int64_t value) {
  if (number >= cfi_registers) return;
  row->how[number] = (uint8_t)how;
  row->value[number] = value;
}

static void set_cfa(struct CfiRow* row, uint64_t number, int64_t offset) {
  row->has_cfa_expression = false;
  row->cfa_register = number < cfi_registers ? (uint8_t)number : cfi_return;
  row->cfa_offset = offset;
}

static int64_t skip_expression(struct Reader* in) {
  const int64_t expression = (int64_t)(uintptr_t)in->at;
  skip(in, read_uleb(in));
  return expression;
}

static bool restore_register(struct Run* run, uint64_t number) {
  if (!run->initial) return false;
  if (number < cfi_registers)
    set_register(run->row, number, (enum CfiHow)run->initial->how[number], run->initial->value[number]);
  return true;
}

static bool restore_row(struct Run* run) {
  if (run->rows == 0) return false;
  *run->row = run->saved[--run->rows];
  return true;
}

// DW_CFA_…
enum Operation {
  op_nop,
  op_set_location,
  op_offset_extended = 0x05,
  op_restore_extended,
  op_undefined,
  op_same_value,
  op_register,
  op_remember_state,
  op_restore_state,
  op_define_cfa,
  op_define_cfa_register,
  op_define_cfa_offset,
  op_define_cfa_expression,
  op_expression,
  op_offset_extended_signed,
  op_define_cfa_signed,
  op_define_cfa_offset_signed,
  op_value_offset,
  op_value_offset_signed,
  op_value_expression,
  op_arguments_size = 0x2e,  // GNU's
};

// The operations that say where the CFA is. False: it is another one.
static bool define_cfa(struct CfiRow* row, uint8_t operation, struct Reader* in, const struct Entry* entry) {
  uint64_t number = row->cfa_register;
  int64_t offset = row->cfa_offset;
  if (operation == op_define_cfa_expression) {
    row->has_cfa_expression = true;
    row->cfa_offset = skip_expression(in);
    return true;
  }
  if (operation == op_define_cfa || operation == op_define_cfa_signed || operation == op_define_cfa_register)
    number = read_uleb(in);
  if (operation == op_define_cfa || operation == op_define_cfa_offset)
    offset = (int64_t)read_uleb(in);
  else if (operation == op_define_cfa_signed || operation == op_define_cfa_offset_signed)
    offset = read_sleb(in) * entry->data_align;
  else if (operation != op_define_cfa_register)
    return false;
  set_cfa(row, number, offset);
  return true;
}

static bool remember_row(struct Run* run) {
  if (run->rows == saved_rows_max) return false;
  run->saved[run->rows++] = *run->row;
  return true;
}

// The operations that say where a register is, and the rest.
static bool execute(struct Run* run, uint8_t operation, struct Reader* in, const struct Entry* entry) {
  struct CfiRow* row = run->row;
  if (operation == op_nop || define_cfa(row, operation, in, entry)) return true;
  if (operation == op_remember_state) return remember_row(run);
  if (operation == op_restore_state) return restore_row(run);
  const uint64_t number = read_uleb(in);  // of the register
  switch (operation) {
    case op_arguments_size:
      return true;
    case op_restore_extended:
      return restore_register(run, number);
    case op_undefined:
      set_register(row, number, cfi_undefined, 0);
      return true;
    case op_same_value:
      set_register(row, number, cfi_same, 0);
      return true;
    case op_register:
      set_register(row, number, cfi_in_register, (int64_t)read_uleb(in));
      return true;
    case op_expression:
      set_register(row, number, cfi_at_expression, skip_expression(in));
      return true;
    case op_value_expression:
      set_register(row, number, cfi_is_expression, skip_expression(in));
      return true;
    case op_offset_extended:
      set_register(row, number, cfi_at_cfa, (int64_t)read_uleb(in) * entry->data_align);
      return true;
    case op_offset_extended_signed:
      set_register(row, number, cfi_at_cfa, read_sleb(in) * entry->data_align);
      return true;
    case op_value_offset:
      set_register(row, number, cfi_is_cfa, (int64_t)read_uleb(in) * entry->data_align);
      return true;
    case op_value_offset_signed:
      set_register(row, number, cfi_is_cfa, read_sleb(in) * entry->data_align);
      return true;
    default:
      return false;
  }
}

// The bytes of code until the next row that begins behind this instruction, or -1: it does not advance.
static int64_t advance_of(uint8_t operation, struct Reader* in, const struct Entry* entry) {
  uint64_t units;
  if (operation >> 6 == 1)
    units = operation & 0x3f;
  else if (operation >= 0x02 && operation <= 0x04)
    units = read_number(in, (size_t)1 << (operation - 2), false);
  else
    return -1;
  return (int64_t)(units * entry->code_align);
}

static bool run_instructions(struct Run* run, struct Reader in, const struct Entry* entry, uint64_t address) {
  uint64_t place = entry->begin;
  while (in.at < in.end && !in.failed) {
    const uint8_t operation = read_byte(&in);
    const int64_t advance = advance_of(operation, &in, entry);
    if (advance >= 0) {
      place += (uint64_t)advance;
      if (place > address) return true;
    } else if (operation == op_set_location) {
      place = read_encoded(&in, entry->encoding);
      if (place > address) return true;
    } else if (operation >> 6 == 2) {  // offset
      set_register(run->row, operation & 0x3f, cfi_at_cfa, (int64_t)read_uleb(&in) * entry->data_align);
    } else if (operation >> 6 == 3) {  // restore
      if (!restore_register(run, operation & 0x3f)) return false;
    } else if (!execute(run, operation, &in, entry)) {
      return false;
    }
  }
  return !in.failed;
}

bool cfi_find_row(const struct CfiModule* module, uintptr_t address, struct CfiRow* row) {
  struct Entry entry = {0};
  const uintptr_t at = find_entry(module, address);
  if (!at || !read_function(module, at, &entry)) return false;
  if (address - entry.begin >= entry.bytes) return false;
  struct Run run = {.row = row};
  memset(row, 0, sizeof *row);
  row->is_signal_frame = entry.is_signal_frame;
  row->cfa_register = cfi_return;  // none yet
  if (!run_instructions(&run, entry.common, &entry, ~(uint64_t)0)) return false;
  const struct CfiRow initial = *row;
  run.initial = &initial;
  return run_instructions(&run, entry.own, &entry, address) &&
         (row->has_cfa_expression || row->cfa_register != cfi_return);
}

struct Operands {
  uint64_t value[operands_max];
  unsigned count;
  bool failed;
};

static void push(struct Operands* operands, uint64_t value) {
  if (operands->count == operands_max)
    operands->failed = true;
  else
    operands->value[operands->count++] = value;
}

static uint64_t pop(struct Operands* operands) {
  if (operands->count > 0) return operands->value[--operands->count];
  operands->failed = true;
  return 0;
}

static bool calculate(uint8_t operation, uint64_t a, uint64_t b, uint64_t* result) {
  switch (operation) {
    case 0x1a:
      *result = a & b;
      break;
    case 0x1c:
      *result = a - b;
      break;
    case 0x1e:
      *result = a * b;
      break;
    case 0x21:
      *result = a | b;
      break;
    case 0x22:
      *result = a + b;
      break;
    case 0x24:
      *result = b < 64 ? a << b : 0;
      break;
    case 0x25:
      *result = b < 64 ? a >> b : 0;
      break;
    case 0x27:
      *result = a ^ b;
      break;
    case 0x29:
      *result = a == b;
      break;
    case 0x2a:
      *result = (int64_t)a >= (int64_t)b;
      break;
    case 0x2b:
      *result = (int64_t)a > (int64_t)b;
      break;
    case 0x2c:
      *result = (int64_t)a <= (int64_t)b;
      break;
    case 0x2d:
      *result = (int64_t)a < (int64_t)b;
      break;
    case 0x2e:
      *result = a != b;
      break;
    default:
      return false;
  }
  return true;
}

static bool push_constant(uint8_t operation, struct Reader* in, struct Operands* operands) {
  if (operation >= 0x30 && operation <= 0x4f)  // lit0 to lit31
    push(operands, operation - 0x30u);
  else if (operation >= 0x08 && operation <= 0x0f)  // const1u, const1s, … const8s
    push(operands, read_number(in, (size_t)1 << ((operation - 8) / 2), operation & 1));
  else if (operation == 0x10)
    push(operands, read_uleb(in));
  else if (operation == 0x11)
    push(operands, (uint64_t)read_sleb(in));
  else if (operation == 0x03)  // addr
    push(operands, read_number(in, 8, false));
  else
    return false;
  return true;
}

bool cfi_evaluate(int64_t expression, const struct CfiRegisters* registers, const uint64_t* first, CfiLoad* load,
                  void* context, uint64_t* result) {
  struct Reader in = {(const uint8_t*)(uintptr_t)expression, (const uint8_t*)(uintptr_t)expression + 10, false};
  struct Operands operands = {.count = 0};
  const uint64_t bytes = read_uleb(&in);
  in.end = in.at + (bytes < 4096 ? bytes : 0);  // within its entry, or the row would not have been made
  if (first) push(&operands, *first);
  while (in.at < in.end && !in.failed && !operands.failed) {
    const uint8_t operation = read_byte(&in);
    uint64_t value;
    if (push_constant(operation, &in, &operands)) continue;
    if (operation >= 0x70 && operation < 0x70 + cfi_registers) {  // breg
      push(&operands, registers->value[operation - 0x70] + (uint64_t)read_sleb(&in));
    } else if (operation == 0x06) {  // deref
      if (!load(context, pop(&operands), &value)) return false;
      push(&operands, value);
    } else if (operation == 0x12) {  // dup
      value = pop(&operands);
      push(&operands, value);
      push(&operands, value);
    } else if (operation == 0x23) {  // plus_uconst
      push(&operands, pop(&operands) + read_uleb(&in));
    } else {
      const uint64_t b = pop(&operands), a = pop(&operands);
      if (!calculate(operation, a, b, &value)) return false;
      push(&operands, value);
    }
  }
  *result = pop(&operands);
  return !in.failed && !operands.failed;
}

#pragma GCC visibility pop
