// Replaces attach_command.cpp and the folder attach on processors other than x86-64, whose registers and stacks they do
// not know.
#include <stdexcept>

#include "cmttrace/attach_command.h"

namespace cmt::trace_launcher {

int run_attach(const Options&) { throw std::runtime_error("--attach: only on x86-64"); }
int run_detach(const Options&) { throw std::runtime_error("--detach: only on x86-64"); }

}  // namespace cmt::trace_launcher
