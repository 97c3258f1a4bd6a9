/// The process that reads the rings: started so that the program never notices.
#pragma once

#include <stdbool.h>

#include "preload/protocol.h"

/// From the constructor: where the collector is, and with which environment it runs.
void collector_configure(void);

/// Creates the trace's files and starts it on them and the rings. Returns 0 or -errno; does not wait for it.
long collector_start(struct Control* control);

/// Whether it was started and has ended.
bool collector_gone(void);
/// Waits for it to be gone.
void collector_reap(void);
/// In a forked child: the parent's is not ours.
void collector_forget(void);
