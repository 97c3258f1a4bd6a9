/// `cmttrace --attach` and `--detach`: recording a program that runs already.
#pragma once

#include "cmttrace/options.h"

namespace cmt::trace_launcher {

/// Records until the program ends, a signal comes, the duration is over, or another process detaches. Returns the exit
/// status.
int run_attach(const Options& options);

int run_detach(const Options& options);

}  // namespace cmt::trace_launcher
