#pragma once

#include <memory>
#include <string>

#include "cmt/reader.h"
#include "libcmt/trace/files.h"

namespace cmt::command {

/// The bytes of a trace: a file or a pipe as it is, or what it holds where it is compressed, told by its first bytes.
/// `path` "-" is standard input. Throws std::system_error; FormatError while it reads on.
///
/// Only the tools do this: the library that is installed needs none of the libraries for it.
std::unique_ptr<Input> open_unpacked(const std::string& path);

/// The same of an open file, which is taken over; `name` is used in messages.
std::unique_ptr<Input> open_unpacked(int fd, const std::string& name);

/// A reader of a trace that may be compressed.
Reader open_trace(const std::string& path, ReadOptions options = {});
Reader open_trace(int fd, const std::string& name, ReadOptions options = {});

}  // namespace cmt::command
