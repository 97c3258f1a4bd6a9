/// The trace's files, which the program creates and the collector writes, and the one line on standard error.
#pragma once

#include "preload/ring.h"

/// From the constructor: what a file may be called.
void output_configure(void);

/// Creates the files of a process that begins, and says where they are in `control`. Returns 0, or -errno of one that
/// could not be created, whose path is then output_path().
long output_create(struct Control* control, int descriptors[outputs_max]);
const char* output_path(void);

/// Remembers what standard error is.
void say_configure(void);
/// One line on standard error, if that is still what it was at the start. `error`: an errno, or 0.
void say(const char* what, const char* detail, long error);
