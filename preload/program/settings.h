/// The environment variables CMTTRACE_… (libcmttrace(1)): their check, the paths that they name, and the collector's
/// own environment.
///
/// Paths are templates: `%p` is the process id, `%n` the program's name, `%%` a per cent sign. They are relative to the
/// folder where the program started.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/protocol.h"
#include "preload/settings_list.h"

/// Reads the variables, the working directory and the program's name: at the tracer's constructor, when all three are
/// known. The functions below read them too, if they are called before.
void settings_read(void);

/// Makes the paths in the program's own variables absolute: a child may start in another folder.
void settings_make_paths_absolute(void);

/// A line about the first variable that is not understood, or NULL. Recording without a limit because its variable is
/// misspelt would be worse than not recording.
const char* settings_fault(void);

/// From here on the settings are these in place of the environment's: "CMTTRACE_TIME=1\0CMTTRACE_STACKS=1\0\0".
/// Borrowed. Paths are not read again until they are asked for. `name`: the program's, in place of the one that a title
/// may have been written over; empty: it is not known.
void settings_attach(const char* settings, const char* name);

/// The value, or NULL.
const char* setting_value(enum Setting setting);
/// Whether the setting has this value.
bool setting_is(enum Setting setting, const char* value);
/// Whether the word is in the setting's list.
bool setting_has(enum Setting setting, const char* word);
/// Whether it has a value that is not empty.
bool setting_is_given(enum Setting setting);
/// The number, or that of the default, or 0.
uint64_t setting_number(enum Setting setting);
uint64_t setting_bytes(enum Setting setting);

const char* program_name(void);

/// The collector's path; empty if it was not found.
const char* collector_program(void);
/// Why not: -errno.
long collector_missing_error(void);
/// The program's environment without what would trace the collector; NULL if there was no memory.
char** collector_environment(void);

/// Whether only profiles are written: CMTTRACE_OUT=/dev/null with CMTTRACE_PPROF.
bool settings_want_no_trace(void);
/// How many files the trace is written to, at most outputs_max.
uint32_t trace_path_count(void);

/// A path's number: below outputs_max a file of the trace, otherwise that of a variable, which may be unset.
enum { path_rings = outputs_max, path_control, path_status, path_pprof, paths_max };

bool path_is_given(uint32_t which);

/// Whether the file of path_status must not be created: a launcher has made it, and removes it when it ends. Processes
/// that go on after the launcher do not make it again.
bool status_must_exist(void);

/// The file of path_status, absolute; NULL: there is none.
const char* status_path(void);
/// Whether a launcher wants to know which programs this process executes without us.
bool children_are_reported(void);

/// Fills in the template, absolute where the folder is known; of path_pprof as for path_create() below. False if there
/// is no template, or the path is too long.
bool path_expand(char out[output_path_bytes], uint32_t which, int process);

/// Creates the file, for reading and writing. If the name is taken, ".2", ".3", … is inserted before its ending; a
/// folder or a device there is an error. With CMTTRACE_OUT_OF a trace's name without %n and %p is that of the
/// launcher's child; other processes' have their ids before the ending. Returns the descriptor or -errno; `out` is the
/// path tried last.
long path_create(char out[output_path_bytes], uint32_t which, int process, uint32_t mode);

/// Where this process is the launcher's child and has executed another program, gives the trace of the program before
/// it the name `out`: app.cmt becomes app.PID.1.cmt. Returns 0 or -errno; -ENOENT: there is no such trace.
long path_move_aside(char out[output_path_bytes], uint32_t which, int process);
