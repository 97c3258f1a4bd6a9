/// What .eh_frame says of a place in the code (DWARF 5, 6.4; the LSB for .eh_frame_hdr): the call frame information.
///
/// The CFA is the value of rsp before the call of the function; the return address lies just below. For each register
/// there is a rule how the caller's value is found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

/// DWARF's numbers.
enum { cfi_rbx = 3, cfi_rbp = 6, cfi_rsp = 7, cfi_return = 16, cfi_registers = 17 };

enum CfiHow {
  cfi_same,
  cfi_undefined,
  cfi_at_cfa,         ///< saved at CFA + value
  cfi_is_cfa,         ///< is CFA + value
  cfi_in_register,    ///< number `value`
  cfi_at_expression,  ///< saved at an address
  cfi_is_expression,
};

/// A module of the program, or, of a program that is not mapped in one piece, the part with the code.
struct CfiModule {
  const void* link_map;
  uintptr_t begin, end;
  uintptr_t header;                ///< .eh_frame_hdr; 0: none
  uintptr_t info_begin, info_end;  ///< within which .eh_frame_hdr and .eh_frame lie
};

struct CfiRow {
  bool is_signal_frame;  ///< the kernel has pushed the registers for a signal handler
  bool has_cfa_expression;
  uint8_t cfa_register;
  int64_t cfa_offset;  ///< or the address of the expression
  uint8_t how[cfi_registers];
  int64_t value[cfi_registers];  ///< or the address of the expression: its length as ULEB128, then its bytes
};

struct CfiRegisters {
  uint64_t value[cfi_registers];
};

/// Loads a word of the stack. False: not there.
typedef bool CfiLoad(void* context, uint64_t address, uint64_t* word);

/// Whether .eh_frame has a row for the instruction at `address`.
bool cfi_find_row(const struct CfiModule* module, uintptr_t address, struct CfiRow* row)
    __attribute__((visibility("hidden")));

/// Evaluates an expression; `first`: NULL, or the value on its stack. False: unknown operation, or no memory.
bool cfi_evaluate(int64_t expression, const struct CfiRegisters* registers, const uint64_t* first, CfiLoad* load,
                  void* context, uint64_t* result) __attribute__((visibility("hidden")));
