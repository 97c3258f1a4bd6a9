/// Pools whose blocks the program reports itself: by the functions of cmttrace.h, which give each pool a name, or by
/// those of heaptrack (heaptrack.c). A thread reports a block after it was made and before it is given back. So reports
/// of a block by several threads are in the order of their true stamps, as calls of malloc are.
#pragma once

#include <stdbool.h>

#include "preload/protocol.h"

/// `own`: record the pools that the program names; `heaptrack`: record the other one.
void program_pools_begin(bool own, bool heaptrack);
/// Hands a process's collector the names of the pools that there are already.
void program_pools_name(struct Control* control);
