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

/// Which file: below outputs_max one of the trace's, else that of a variable of its own, which may be unset.
enum { name_rings = 4, name_control, name_status, names_max };

bool name_is_given(uint32_t which);

/// Whether the file of name_status is written to where it is, and not missed where it is not: a launcher has made it,
/// and removes it when it ends, however long what the command has left behind goes on.
bool name_only_if_there(void);

/// The n-th name to try for it, absolute where it can be: ".2", ".3" stand before the ending. False if there is none,
/// or it is too long.
bool name_expand(char out[path_bytes_max], uint32_t which, int process, int n);

/// Creates the file under the first name that is free, for reading and writing, and returns its descriptor or -errno.
/// `out`: the name; empty where there is none. What has the name and is no file (a device, a folder) is not gone round.
long name_create(char out[path_bytes_max], uint32_t which, int process, uint32_t mode);
