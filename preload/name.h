/// Where the trace goes: CMTTRACE_OUT, names between commas, with `%p` the process, `%n` the program's name, `%%` a per
/// cent sign.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { path_bytes_max = 4096 };

/// Reads the environment, the working directory and the program's name, once.
void name_configure(void);

/// The program's name.
const char* name_of_program(void);

/// How many files a trace has, at most outputs_max.
uint32_t name_count(void);

/// The n-th name to try for file `which`, absolute where it can be: ".2", ".3" stand before the ending. False if it is
/// too long.
bool name_expand(char out[path_bytes_max], uint32_t which, int process, int n);

/// The n-th name to try for the rings (CMTTRACE_RINGS). False if they are to be in memory.
bool name_of_rings(char out[path_bytes_max], int process, int n);
