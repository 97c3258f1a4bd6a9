/// Addresses of code, in the memory that the traced program and its collector share. The frames of call stacks are
/// indices of them (preload/protocol.h, "Call stacks"). C and C++. The program writes, the collector only reads.
///
/// A frame in a record is an index of UnwindTable::rule, or one of InterpreterFrames::frame (see there). The entry of
/// UnwindTable::rule has the frame's address. `module_of_rule` has the number of its module at the same index. Both are
/// there before a record with the index is published, and never change: an index never gets another address. The rule
/// in an entry is the program's own (preload/program/unwind/rules.h).
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
  unwind_rules_max = 76000,    ///< addresses on stacks, ever
  unwind_slots_max = 1 << 17,  ///< of the table's index
  stack_modules_max = 1024,
  stack_build_id_max = 32,
  stack_text_bytes = 96 << 10,                                           ///< of paths
  interpreter_frames_first = unwind_rules_max + 1,                       ///< frames from this index on
  interpreter_frames_max = unwind_slots_max - interpreter_frames_first,  ///< as many as the index of a frame can name
  interpreter_text_bytes = 4 << 20,                                      ///< of their functions and files
};

/// A rule for the frames of one address.
struct UnwindRule {
  uint64_t key;  ///< the address; with UNWIND_EXACT if it is no return address, but was interrupted by a signal
  uint64_t rule;
};
#define UNWIND_EXACT ((uint64_t)1 << 63)

/// The table of rules, of which little is touched in most programs. Begins as zeros.
struct UnwindTable {
  uint32_t used;                                 ///< entries of `rule` that were given out
  uint32_t slot[unwind_slots_max];               ///< by a hash of the key: index in `rule` + 1
  struct UnwindRule rule[unwind_rules_max + 1];  ///< in the order of first use; the last one stays empty
};

/// A program or library. Loaded twice, it is two modules, unless the same file comes back to the same addresses.
struct StackModule {
  uint64_t link_map;    ///< the program's: the loader's entry; 0: not complete, 1: the module is gone
  uint64_t begin, end;  ///< addresses
  uint64_t bias;        ///< an address less this is the one that the file's symbol table has
  uint64_t loaded;      ///< stamp at which it was first seen on a stack
  uint64_t unloaded;    ///< stamp at which it went; 0: it is there. May be set at any time
  uint32_t path_at;     ///< in StackShare::text, where it ends with a zero
  uint32_t build_id_bytes;
  uint8_t build_id[stack_build_id_max];
};

/// A line of an interpreter's program. Two lines that have the same function, file and number are one frame.
struct InterpreterFrame {
  uint32_t function_at;  ///< in InterpreterFrames::text, where it ends with a zero. UTF-8
  uint32_t file_at;      ///< the same
  uint32_t line;         ///< 0: not known
};

/// Frames of interpreters, and their names. The frame with index interpreter_frames_first + i is `frame[i]`. Its names
/// are there before a record with the index is published, and never change. Memory is backed as it is used.
struct InterpreterFrames {
  uint32_t used;       ///< entries of `frame` that were given out; the first is a frame that has no name
  uint32_t text_used;  ///< the text begins with an empty name
  uint64_t unplaced;   ///< stacks whose Python frames had no known place among the native ones: these are native
  uint64_t nameless;   ///< frames that have got no name, because the tables were full
  struct InterpreterFrame frame[interpreter_frames_max];
  char text[interpreter_text_bytes];
};

/// Zeroed memory at its begin, 2 MiB without `interpreter`.
struct StackShare {
  struct UnwindTable table;
  uint16_t module_of_rule[unwind_rules_max + 1];  ///< index in `module` + 1; 0: code of no module
  uint32_t modules;                               ///< entries of `module` that were given out
  uint32_t text_used;
  struct StackModule module[stack_modules_max];
  char text[stack_text_bytes];  ///< begins with a path of no bytes: not known
  struct InterpreterFrames interpreter __attribute__((aligned(4096)));
};
static_assert(offsetof(struct StackShare, interpreter) <= 2 << 20, "memory of a program");
static_assert(interpreter_frames_first + interpreter_frames_max <= 1 << 17, "an index fits a record");
