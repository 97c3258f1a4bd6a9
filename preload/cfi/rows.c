// Executes the programs of a CIE and an FDE (DWARF 5, 6.4.2) up to an address.

#include "preload/cfi/cursor.h"

enum { saved_rows_max = 4 };  // compilers nest DW_CFA_remember_state once

struct Run {
  const struct CfiFunction* function;
  struct CfiRow* row;
  const struct CfiRow* initial;  // the row after the CIE's instructions; NULL while they are executed
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

static int64_t skip_expression(struct CfiCursor* in) {
  const int64_t expression = (int64_t)in->at;
  cfi_skip(in, cfi_read_uleb(in));
  return expression;
}

// Overflow wraps: the factor and the number come from the file.
static int64_t scaled(uint64_t number, const struct Run* run) {
  return (int64_t)(number * (uint64_t)run->function->data_factor);
}

static bool restore_register(struct Run* run, uint64_t number) {
  if (!run->initial) return false;
  if (number < cfi_registers)
    set_register(run->row, number, (enum CfiHow)run->initial->how[number], run->initial->value[number]);
  return true;
}

static bool remember_row(struct Run* run) {
  if (run->rows == saved_rows_max) return false;
  run->saved[run->rows++] = *run->row;
  return true;
}

static bool restore_row(struct Run* run) {
  if (run->rows == 0) return false;
  cfi_must(run->rows <= saved_rows_max);
  *run->row = run->saved[--run->rows];
  return true;
}

// DW_CFA_…
enum Operation {
  op_nop,
  op_set_location,
  op_advance_1,
  op_advance_2,
  op_advance_4,
  op_offset_extended,
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
// In the upper two bits; the lower six are the operand.
enum { op_advance = 1, op_offset = 2, op_restore = 3 };

// Executes the operations that define the CFA. Returns false for any other.
static bool define_cfa(const struct Run* run, uint8_t operation, struct CfiCursor* in) {
  struct CfiRow* row = run->row;
  uint64_t number = row->cfa_register;
  int64_t offset = row->cfa_offset;
  if (operation == op_define_cfa_expression) {
    row->has_cfa_expression = true;
    row->cfa_offset = skip_expression(in);
    return true;
  }
  if (operation == op_define_cfa || operation == op_define_cfa_signed || operation == op_define_cfa_register)
    number = cfi_read_uleb(in);
  if (operation == op_define_cfa || operation == op_define_cfa_offset)
    offset = (int64_t)cfi_read_uleb(in);
  else if (operation == op_define_cfa_signed || operation == op_define_cfa_offset_signed)
    offset = scaled((uint64_t)cfi_read_sleb(in), run);
  else if (operation != op_define_cfa_register)
    return false;
  set_cfa(row, number, offset);
  return true;
}

// Executes the operations that define a register, whose number is their first operand. Returns false for any other.
static bool define_register(struct Run* run, uint8_t operation, struct CfiCursor* in) {
  struct CfiRow* row = run->row;
  const uint64_t number = cfi_read_uleb(in);
  switch (operation) {
    case op_restore_extended:
      return restore_register(run, number);
    case op_undefined:
      set_register(row, number, cfi_undefined, 0);
      return true;
    case op_same_value:
      set_register(row, number, cfi_same, 0);
      return true;
    case op_register:
      set_register(row, number, cfi_in_register, (int64_t)cfi_read_uleb(in));
      return true;
    case op_expression:
      set_register(row, number, cfi_at_expression, skip_expression(in));
      return true;
    case op_value_expression:
      set_register(row, number, cfi_is_expression, skip_expression(in));
      return true;
    case op_offset_extended:
      set_register(row, number, cfi_at_cfa, scaled(cfi_read_uleb(in), run));
      return true;
    case op_offset_extended_signed:
      set_register(row, number, cfi_at_cfa, scaled((uint64_t)cfi_read_sleb(in), run));
      return true;
    case op_value_offset:
      set_register(row, number, cfi_is_cfa, scaled(cfi_read_uleb(in), run));
      return true;
    case op_value_offset_signed:
      set_register(row, number, cfi_is_cfa, scaled((uint64_t)cfi_read_sleb(in), run));
      return true;
    default:
      return false;
  }
}

// Returns false if the operation is unknown, or contradicts those before.
static bool execute(struct Run* run, uint8_t operation, struct CfiCursor* in) {
  const uint8_t low = operation & 0x3f;
  if (operation >> 6 == op_restore) return restore_register(run, low);
  if (operation >> 6 == op_offset) {
    set_register(run->row, low, cfi_at_cfa, scaled(cfi_read_uleb(in), run));
    return true;
  }
  if (operation == op_nop || define_cfa(run, operation, in)) return true;
  if (operation == op_remember_state) return remember_row(run);
  if (operation == op_restore_state) return restore_row(run);
  if (operation == op_arguments_size) {
    cfi_read_uleb(in);
    return true;
  }
  return define_register(run, operation, in);
}

// Whether the operation begins the next row; *place is then where that begins.
static bool advance(const struct Run* run, uint8_t operation, struct CfiCursor* in, uint64_t* place) {
  uint64_t units;
  if (operation == op_set_location) {
    *place = cfi_read_encoded(in, run->function->encoding);
    return true;
  }
  if (operation >> 6 == op_advance)
    units = operation & 0x3f;
  else if (operation >= op_advance_1 && operation <= op_advance_4)
    units = cfi_read_number(in, 1u << (operation - op_advance_1), false);
  else
    return false;
  *place += units * run->function->code_factor;
  return true;
}

static bool run_instructions(struct Run* run, struct CfiCursor in, uint64_t address) {
  uint64_t place = run->function->begin;
  while (cfi_has_more(&in)) {
    const uint8_t operation = cfi_read_byte(&in);
    if (advance(run, operation, &in, &place)) {
      if (!in.failed && place > address) return true;
    } else if (!execute(run, operation, &in)) {
      return false;
    }
  }
  return !in.failed;
}

bool cfi_make_row(const struct CfiTables* tables, const struct CfiFunction* function, uint64_t address,
                  struct CfiRow* row) {
  cfi_must(address - function->begin < function->bytes);
  struct Run run = {.function = function, .row = row};
  const uint8_t no_register = cfi_return;
  if (function->return_register != cfi_return) return false;
  memset(row, 0, sizeof *row);
  row->is_signal_frame = function->is_signal_frame;
  row->cfa_register = no_register;
  if (!run_instructions(&run, cfi_cursor(tables, function->common_program, function->common_end), UINT64_MAX))
    return false;
  const struct CfiRow initial = *row;
  run.initial = &initial;
  return run_instructions(&run, cfi_cursor(tables, function->own_program, function->own_end), address) &&
         (row->has_cfa_expression || row->cfa_register != no_register);
}

bool cfi_find_row(const struct CfiTables* tables, uint64_t address, struct CfiRow* row) {
  struct CfiFunction function;
  return cfi_find_function(tables, address, &function) && cfi_make_row(tables, &function, address, row);
}
