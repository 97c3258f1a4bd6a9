/// Opens a trace for a tool: a file, a pipe or standard input, compressed in one of four forms or not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/trace/files.h"

namespace cmt::logs {
struct From;
}

namespace cmt::command {

/// The bytes of a file or a pipe, decompressed if its first bytes are those of gzip, zstd, xz or bzip2. `path` "-" is
/// standard input. Throws std::system_error. Reading throws FormatError too.
///
/// This function is not in libcmt, so that a program that links libcmt does not need the libraries for it.
std::unique_ptr<Input> open_decompressed(const std::string& path);

/// The same of an open file, which the input closes. Messages contain `name`.
std::unique_ptr<Input> open_decompressed(int fd, const std::string& name);

/// The whole text of a report of a tool, which is kept in memory. Throws FormatError if it has 32 MiB or more and was
/// compressed to less than a hundredth, as a file of some KB that unpacks to gigabytes.
std::string_view read_whole(Input& input);

/// Opens a file, or standard input if `path` is "-". If that is a terminal, says on standard error that the tool waits
/// for it. The caller closes the descriptor. Throws std::system_error.
int open_or_wait(const std::string& path);

/// Whether a caller knows that the events of a sampled trace are those of a few blocks.
enum class Samples { refused, accepted };

/// A reader of a trace or of the log of another tool, which may be compressed. Throws FormatError if standard input is
/// empty: mostly the command before it in the pipe has failed. Throws it too, with the tools that serve, if the trace
/// is sampled and `samples` refuses it.
Reader open_trace(const std::string& path, ReadOptions options = {}, Samples samples = Samples::refused);
Reader open_trace(int fd, const std::string& name, ReadOptions options = {});

/// The same with options for logs.
Reader open_trace(int fd, const std::string& name, ReadOptions options, const logs::From& from,
                  Samples samples = Samples::refused);

/// Throws FormatError, as open_trace() does, if a trace is sampled.
void refuse_samples(const std::string& name, const Header& header);

/// "a sample per 512 KiB", of a sampled trace.
std::string sampling_text(const Header& header);

/// The value of the key `memory` (format-spec/text.md) in words: "250 MiB of the control group's 256 MiB were in use at
/// 6.1 s: 240 MiB anonymous, of which the recorder has 5 MiB". Empty: the trace has no such value.
std::string memory_text(const Header& header);
/// The events that the recorder has lost, as with CMTTRACE_ON_FULL=drop. These are the only repairs of libcmttrace that
/// have no kind. 0 for the traces of others.
std::uint64_t lost_events(const Header& header, const Repairs& repairs);

/// How long the program is known to have been recorded, from the trace's time 0; 0 where nobody knows it.
std::uint64_t recorded_ns(const Header& header, const std::vector<RunStretch>& stretches);

/// Why a trace lacks its end, or has no events: "is still being recorded; its part so far was read", or else
/// `otherwise`.
std::string missing_end(const std::string& path, bool has_events, const std::string& otherwise);

/// Whether a path names a regular file, which can be read more than once.
bool can_be_read_again(const std::string& path);

}  // namespace cmt::command
