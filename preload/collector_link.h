/// The process that encodes: started so that the program never notices, and waited for at the end.
#pragma once

/// From the constructor: where the collector is, and with which environment it runs.
void collector_configure(void);

/// Starts it; it writes to `file`. Returns a socket that takes the text, or -errno. The text's end line stands between
/// NULs, and counts only if nothing follows it.
long collector_start(int file);

/// Ends the text and waits, 60 s at most, until the file is whole. Closes the socket.
void collector_finish(int link);
