/// The environment variables CMTTRACE_… (libcmttrace(1)): their check, the paths that they name, and the collector's
/// own environment.
///
/// Paths are templates: `%p` is the process id, `%n` the program's name, `%%` a per cent sign. They are relative to the
/// folder where the program started.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/protocol.h"

/// Reads the variables, the working directory and the program's name: at the tracer's constructor, when all three are
/// known. The functions below read them too, if they are called before.
void settings_read(void);

/// A line about the first variable that is not understood, or NULL. Recording without a limit because its variable is
/// misspelt would be worse than not recording.
const char* settings_fault(void);

/// Whether the variable has this value.
bool setting_is(const char* name, const char* value);

const char* program_name(void);

/// The collector's path; empty if it was not found.
const char* collector_program(void);
/// The program's environment without what would trace the collector; NULL if there was no memory.
char** collector_environment(void);

/// How many files the trace is written to, at most outputs_max.
uint32_t trace_path_count(void);

/// A path's number: below outputs_max a file of the trace, otherwise that of a variable, which may be unset.
enum { path_rings = outputs_max, path_control, path_status, paths_max };

bool path_is_given(uint32_t which);

/// Whether the file of path_status is not to be created: a launcher has made it, and removes it when it ends; processes
/// that it leaves behind do not make it again.
bool status_must_exist(void);

/// Fills in the template, absolute where the folder is known. `n` above 1 inserts ".2", ".3", … before the ending.
/// False if there is no template, or the path is too long.
bool path_expand(char out[output_path_bytes], uint32_t which, int process, int n);

/// Creates the file under the first number that is free, for reading and writing. Returns its descriptor or -errno;
/// `out` is the path tried last. A name that is taken by a folder or a device is an error, not a reason to try the
/// next.
long path_create(char out[output_path_bytes], uint32_t which, int process, uint32_t mode);
