/// Opens a trace, or the log of another tool, as a cmt::Reader.
#pragma once

#include <string>

#include "cmt/reader.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/logs/log_source.h"

namespace cmt::trace2cmt {

using logs::From;
using logs::SeveralProcesses;

/// A reader of a trace or log, compressed or not; `path` "-" is standard input. Its read() throws SeveralProcesses if a
/// log has more than one process and none was chosen.
cmt::Reader open_log(const std::string& path, const From& from, cmt::ReadOptions options,
                     cmt::command::Samples samples = cmt::command::Samples::refused);

/// The same for an open file, which the reader closes.
cmt::Reader open_log(int fd, const std::string& name, const From& from, cmt::ReadOptions options,
                     cmt::command::Samples samples = cmt::command::Samples::refused);

}  // namespace cmt::trace2cmt
