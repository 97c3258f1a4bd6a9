/// The trace's files, which the program creates and the collector writes, and the one line on standard error.
#pragma once

#include "preload/protocol.h"

/// Creates the files of a process that begins, and its FIFO for commands, and says where they are in `control`. Returns
/// 0, or -errno of one that could not be created, whose path is then output_path().
long output_create(struct Control* control, int descriptors[outputs_max]);
const char* output_path(void);
/// Removes what output_create() has created: nobody will write there.
void output_discard(const struct Control* control);

/// Remembers what standard error is, or that it is closed.
void say_configure(void);
/// One line on standard error, if that is still what it was at the start: its number may be a file of the program now.
/// `error`: an errno, or 0.
void say(const char* what, const char* detail, long error);
