/// The process that encodes: started so that the program never notices, and waited for at the end.
#pragma once

#include "preload/collector_shared.h"

/// From the constructor: where the collector is, and with which environment it runs.
void collector_configure(void);

/// Starts it; it writes to `file`. Returns a socket that takes the text, or -errno. The text's end line stands between
/// NULs, and counts only if nothing follows it.
long collector_start(int file);

/// What is shared with the collector that was started last; NULL if there is no memory for that.
struct CollectorShared* collector_shared(void);
/// In a forked child: the parent's is not ours.
void collector_forget(void);

/// Ends the text and waits, 60 s at most, until the file is whole. Closes the socket.
void collector_finish(int link);
