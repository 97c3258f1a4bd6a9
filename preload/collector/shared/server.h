// The collector that a launcher shares among the processes of its command: short processes get their traces without
// that each starts a collector.
#pragma once

namespace cmt::collector {

/// Takes over the recordings that programs hand over (preload/hand_over.h) at the listening socket `listener`. Returns
/// soon after the launcher has ended or closed its end of the pipe `launcher`.
///
/// A thread holds each recording (serve_program). There is one more thread than are needed, so that nobody waits for
/// one to start. If there are too many programs at once, it refuses the others, and they start collectors of their own.
void run_server(int listener, int launcher);

}  // namespace cmt::collector
