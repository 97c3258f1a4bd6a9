/// The trace's file, or the collector's socket: a buffer, and what keeps it whole. Everything but say() and
/// output_configure() is called under the recorder's lock.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum Ending { end_none, end_complete, end_truncated };

/// From the constructor, when libc is ready: what a file may be opened with.
void output_configure(void);

/// A new process: nothing is buffered, nothing is open, the parent's descriptor is closed. Opens nothing.
void output_begin_process(void);

/// At least so many bytes (64 KiB at most) to write to; what is written counts once output_added is told its end.
char* output_room(size_t bytes);
void output_added(char* end);

/// One more event that was dropped or made up, for the end line.
void output_count_repair(void);

/// Opens the file, if that was not done, and writes what is buffered, and the end line. The end line goes away when
/// something follows.
void output_flush(enum Ending ending);

/// After a flush with an end that was not the end.
void output_go_on(void);

/// After the last flush: waits for the collector, if there is one. False where the file goes on to take events.
bool output_finish(void);

/// The descriptor that the program must not close, or -1.
int output_descriptor(void);

/// Whether this is the process that the output belongs to, and not a child of vfork in its memory.
bool output_is_ours(void);

/// One line on standard error, if that is still what it was at the start. `error`: an errno, or 0.
void say(const char* what, const char* detail, long error);
