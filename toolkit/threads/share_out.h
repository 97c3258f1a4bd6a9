/// A loop whose iterations are shared out among threads.
#pragma once

#include <cstddef>
#include <functional>

namespace cmt::threads {

/// Calls `work(item, worker)` for each item below `count`, by rising number, on at most `jobs` threads, or fewer where
/// the system has no more; workers count from 0, and are below `jobs`. Throws what one of the calls has thrown, once
/// all threads have stopped.
void share_out(std::size_t count, unsigned jobs, const std::function<void(std::size_t item, std::size_t worker)>& work);

}  // namespace cmt::threads
