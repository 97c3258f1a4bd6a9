/// Finds the caller of a frame by the call frame information in .eh_frame, for x86-64. The recorder, cmttrace's attach
/// and the naming of frames share it; each reads the tables from another place, and none may trust what they contain.
///
///     .eh_frame_hdr   A sorted table: the begin of each function, and where its entry (FDE) is.
///     FDE             The function's addresses, its CIE, and a program for a small machine.
///     CIE             What its FDEs share: factors, encodings, the first part of the program.
///
///     row             The result of both programs up to an address: a rule for the CFA and for each register.
///
/// The CFA (canonical frame address) is the value of rsp before the call of the function; the return address is just
/// below. Mostly it is rsp or rbp plus a number, and mostly a register of the caller is saved at the CFA plus a number.
///
/// Sources: DWARF 5, 6.4 (programs) and 2.5 (expressions); LSB core 10.6 (.eh_frame and .eh_frame_hdr). Supported are
/// the operations and encodings that compilers and libc use on x86-64; another one is reported as "no row".
///
/// Nothing here allocates or takes a lock, so all of it may run in a signal handler.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// DWARF's numbers of registers. cfi_return is the return address: where the frame is.
enum { cfi_rbx = 3, cfi_rbp = 6, cfi_rsp = 7, cfi_return = 16, cfi_registers = 17 };

/// Returns how many bytes of the tables can be read from `address` on, and sets *bytes to them; 0 if none can. The
/// bytes stay valid and unchanged while a function of this file runs.
typedef size_t CfiWindow(const void* context, uint64_t address, const uint8_t** bytes);

/// The tables of one module.
struct CfiTables {
  uint64_t header;  ///< the address of .eh_frame_hdr; 0: the module has none
  CfiWindow* window;
  const void* context;
};

/// An FDE with its CIE.
struct CfiFunction {
  uint64_t begin, bytes;                ///< the function's code
  uint64_t common_program, common_end;  ///< instructions of the CIE
  uint64_t own_program, own_end;        ///< instructions of the FDE
  uint64_t code_factor;
  int64_t data_factor;
  uint64_t return_register;
  uint8_t encoding;  ///< of addresses of code
  bool has_data, is_signal_frame;
};

enum CfiHow {
  cfi_same,
  cfi_undefined,
  cfi_at_cfa,         ///< saved at CFA + value
  cfi_is_cfa,         ///< is CFA + value
  cfi_in_register,    ///< is in the register with the number `value`
  cfi_at_expression,  ///< saved at the address that an expression gives
  cfi_is_expression,  ///< is what an expression gives
};

/// How the caller's registers are found. An expression is named by its address in the tables.
struct CfiRow {
  bool is_signal_frame;  ///< the kernel has pushed the registers for a signal handler
  bool has_cfa_expression;
  uint8_t cfa_register;
  int64_t cfa_offset;  ///< or the CFA's expression
  uint8_t how[cfi_registers];
  int64_t value[cfi_registers];
};

struct CfiRegisters {
  uint64_t value[cfi_registers];
};

/// Loads 8 bytes of the stack. Returns false if they cannot be read.
typedef bool CfiLoad(void* context, uint64_t address, uint64_t* word);

struct CfiFrame {
  const struct CfiTables* tables;  ///< of the module that has the frame's code
  const struct CfiRegisters* registers;
  CfiLoad* load;
  void* context;  ///< passed to `load`
};

struct CfiCaller {
  struct CfiRegisters registers;
  uint64_t cfa;
  uint64_t rbp_at;  ///< where the caller's rbp was loaded from; 0: it was not loaded
};

/// Finds the function that has the code at `address`. Returns false if there is none, or the tables are damaged. Other
/// processors than x86-64 have the same table of functions, so this function works for any of them.
bool cfi_find_function(const struct CfiTables* tables, uint64_t address, struct CfiFunction* function);

/// The distance between the begins of two functions with an entry: the last one that is not after an address, and the
/// next. 0: there are not both.
uint64_t cfi_distance_of_neighbours(const struct CfiTables* tables, uint64_t address);

/// Executes the programs of a function up to `address`, which is in it. Returns false if an instruction is unknown or
/// damaged.
bool cfi_make_row(const struct CfiTables* tables, const struct CfiFunction* function, uint64_t address,
                  struct CfiRow* row);

/// Both of the above.
bool cfi_find_row(const struct CfiTables* tables, uint64_t address, struct CfiRow* row);

/// Evaluates an expression of a row. `first`: NULL, or the value that is on its stack at the begin. Returns false if an
/// operation is unknown, or memory cannot be read.
bool cfi_evaluate(const struct CfiFrame* frame, int64_t expression, const uint64_t* first, uint64_t* result);

/// Finds all registers of the caller by the row of the frame's code. Returns false if the frame has no caller, or
/// memory cannot be read. A register that the function neither saved nor changed has the frame's value.
bool cfi_find_caller(const struct CfiFrame* frame, const struct CfiRow* row, struct CfiCaller* caller);

#ifdef __cplusplus
}
#endif
