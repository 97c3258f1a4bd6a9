/// How a trace's file tells that it is still written: by locks (F_OFD_SETLK of fcntl(2)) on bytes
/// far behind its end. They belong to the descriptor that the collector writes to, and go with it however it ends.
#pragma once

namespace cmt {

/// Held as long as a collector has the file.
inline constexpr long long recorder_at_work = 1LL << 61;
/// Held while a reader should wait: the program has ended, or has just begun. One who reads the trace of a program at
/// work gets what there is.
inline constexpr long long recorder_is_awaited = (1LL << 61) + 1;

}  // namespace cmt
