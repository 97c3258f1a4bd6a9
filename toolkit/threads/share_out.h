/// A loop whose iterations are shared out among threads.
#pragma once

#include <cstddef>
#include <functional>

namespace cmt::threads {

/// Calls `work(item, worker)` for each item below `count`, by rising number, on at most `jobs` threads, or fewer if the
/// system has no more. Workers are numbered from 0. When all threads have stopped, throws the first exception of a
/// call.
void share_out(std::size_t count, unsigned jobs, const std::function<void(std::size_t item, std::size_t worker)>& work);

}  // namespace cmt::threads
