#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "cmt/event.h"
#include "cmt/reader.h"

namespace cmt {

/// Visits all events of a trace on `threads` threads, for what can be counted in parts and added up. A part is what
/// decodes alone: a block of the stream or, where addresses are wanted, the blocks from a keyframe to the next. Parts
/// are numbered in the trace's order. Each is visited by one thread, its events in order; different parts at once, in
/// no order. What has no index (text, a pipe, a file that was cut off) is one part.
///
/// Returns the number of parts. What `visit` or reading throws first, by the order of parts, is thrown here.
std::size_t for_each_part(const std::string& path, const ReadOptions& options, unsigned threads,
                          const std::function<void(std::size_t part, std::span<const Event> events)>& visit);

}  // namespace cmt
