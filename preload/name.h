/// Where the trace goes: CMTTRACE_OUT, with `%p` the process, `%n` the program's name, `%%` a per cent sign.
#pragma once

#include <stdbool.h>

enum { path_bytes_max = 4096 };

/// Reads the environment, the working directory and the program's name, once.
void name_configure(void);

/// The program's name.
const char* name_of_program(void);

/// The n-th name to try, absolute where it can be: ".2", ".3" stand before the ending. False if it is too long.
bool name_expand(char out[path_bytes_max], int process, int n);

/// Whether a path asks for the compact form.
bool name_is_compact(const char* path);
