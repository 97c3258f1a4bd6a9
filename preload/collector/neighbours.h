#pragma once

namespace cmt::collector {

/// In a container, whose first process is recorded: whether there is another collector, or one that is about to start,
/// of a program that has ended. It is known by its keeper (collector_link.c), which the first process inherits and
/// which blocks all signals.
bool has_busy_neighbour();

}  // namespace cmt::collector
