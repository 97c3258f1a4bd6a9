// Applies a row to the registers of a frame, and evaluates the expressions of rows (DWARF 5, 2.5).

#include "preload/cfi/cursor.h"

enum { operands_max = 16, expression_bytes_max = 4096 };

struct Operands {
  uint64_t value[operands_max];
  unsigned count;
  bool failed;
};

static void push(struct Operands* operands, uint64_t value) {
  cfi_must(operands->count <= operands_max);
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

// DW_OP_…
enum {
  op_address = 0x03,
  op_load = 0x06,
  op_constants = 0x08,  // const1u, const1s, … const8s
  op_constants_last = 0x0f,
  op_unsigned = 0x10,
  op_signed = 0x11,
  op_duplicate = 0x12,
  op_add_constant = 0x23,
  op_literals = 0x30,  // lit0 to lit31
  op_literals_last = 0x4f,
  op_registers = 0x70,  // breg0 to breg31
};

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

static bool push_constant(uint8_t operation, struct CfiCursor* in, struct Operands* operands) {
  if (operation >= op_literals && operation <= op_literals_last)
    push(operands, operation - (uint64_t)op_literals);
  else if (operation >= op_constants && operation <= op_constants_last)
    push(operands, cfi_read_number(in, 1u << ((operation - op_constants) / 2), operation & 1));
  else if (operation == op_unsigned)
    push(operands, cfi_read_uleb(in));
  else if (operation == op_signed)
    push(operands, (uint64_t)cfi_read_sleb(in));
  else if (operation == op_address)
    push(operands, cfi_read_number(in, 8, false));
  else
    return false;
  return true;
}

static bool execute_operation(const struct CfiFrame* frame, uint8_t operation, struct CfiCursor* in,
                              struct Operands* operands) {
  uint64_t value;
  if (push_constant(operation, in, operands)) return true;
  if (operation >= op_registers && operation < op_registers + cfi_registers) {
    push(operands, frame->registers->value[operation - op_registers] + (uint64_t)cfi_read_sleb(in));
  } else if (operation == op_load) {
    if (!frame->load(frame->context, pop(operands), &value)) return false;
    push(operands, value);
  } else if (operation == op_duplicate) {
    value = pop(operands);
    push(operands, value);
    push(operands, value);
  } else if (operation == op_add_constant) {
    push(operands, pop(operands) + cfi_read_uleb(in));
  } else {
    const uint64_t b = pop(operands), a = pop(operands);
    if (!calculate(operation, a, b, &value)) return false;
    push(operands, value);
  }
  return !operands->failed;
}

bool cfi_evaluate(const struct CfiFrame* frame, int64_t expression, const uint64_t* first, uint64_t* result) {
  struct CfiCursor in = cfi_cursor(frame->tables, (uint64_t)expression, UINT64_MAX);
  struct Operands operands = {.count = 0};
  const uint64_t bytes = cfi_read_uleb(&in);
  if (in.failed || bytes > expression_bytes_max || bytes > in.end - in.at) return false;
  cfi_end_after(&in, bytes);
  if (first) push(&operands, *first);
  while (cfi_has_more(&in)) {
    if (!execute_operation(frame, cfi_read_byte(&in), &in, &operands)) return false;
  }
  *result = pop(&operands);
  return !in.failed && !operands.failed;
}

static bool find_cfa(const struct CfiFrame* frame, const struct CfiRow* row, uint64_t* cfa) {
  if (row->has_cfa_expression) return cfi_evaluate(frame, row->cfa_offset, NULL, cfa);
  cfi_must(row->cfa_register < cfi_return);
  *cfa = frame->registers->value[row->cfa_register] + (uint64_t)row->cfa_offset;
  return true;
}

// Finds the caller's value of a register. *saved_at is the address that it was loaded from, or 0.
static bool find_register(const struct CfiFrame* frame, const struct CfiRow* row, unsigned number, uint64_t cfa,
                          uint64_t* value, uint64_t* saved_at) {
  const int64_t operand = row->value[number];
  *saved_at = 0;
  switch (row->how[number]) {
    case cfi_same:
    case cfi_undefined:
      *value = number == cfi_rsp ? cfa : frame->registers->value[number];
      return number != cfi_return;
    case cfi_is_cfa:
      *value = cfa + (uint64_t)operand;
      return true;
    case cfi_in_register:
      if ((uint64_t)operand >= cfi_registers) return false;
      *value = frame->registers->value[operand];
      return true;
    case cfi_is_expression:
      return cfi_evaluate(frame, operand, &cfa, value);
    case cfi_at_cfa:
      *saved_at = cfa + (uint64_t)operand;
      break;
    default:
      cfi_must(row->how[number] == cfi_at_expression);
      if (!cfi_evaluate(frame, operand, &cfa, saved_at)) return false;
  }
  return frame->load(frame->context, *saved_at, value);
}

bool cfi_find_caller(const struct CfiFrame* frame, const struct CfiRow* row, struct CfiCaller* caller) {
  uint64_t saved_at;
  if (!find_cfa(frame, row, &caller->cfa)) return false;
  for (unsigned i = 0; i < cfi_registers; i++) {
    if (!find_register(frame, row, i, caller->cfa, &caller->registers.value[i], &saved_at)) return false;
    if (i == cfi_rbp) caller->rbp_at = saved_at;
  }
  return true;
}
