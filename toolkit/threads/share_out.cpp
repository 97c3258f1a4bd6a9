// Shares items out by one atomic counter.

#include "toolkit/threads/share_out.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cmt::threads {

void share_out(std::size_t count, unsigned jobs,
               const std::function<void(std::size_t item, std::size_t worker)>& work) {
  assert(jobs != 0 && work);
  std::atomic<std::size_t> next = 0;
  std::exception_ptr error;
  std::once_flag has_failed;
  const auto work_as = [&](std::size_t worker) {
    try {
      for (std::size_t item; (item = next++) < count;) work(item, worker);
    } catch (...) {
      std::call_once(has_failed, [&error] { error = std::current_exception(); });
      next = count;
    }
  };
  std::vector<std::thread> others;
  const std::size_t workers = std::min<std::size_t>(jobs, count);
  others.reserve(workers);
  try {
    for (std::size_t i = 1; i < workers; ++i) others.emplace_back(work_as, i);
  } catch (const std::system_error&) {  // fewer have to do
  }
  work_as(0);
  for (std::thread& other : others) other.join();
  assert(next >= count);
  if (error) std::rethrow_exception(error);
}

}  // namespace cmt::threads
