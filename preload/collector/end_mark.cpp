// Replaces the list of robust futexes, which a thread has one of.

#include "preload/collector/end_mark.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace cmt::collector {

EndMark::EndMark(Control& control) : control_(control) {
  __atomic_store_n(&control.collector, static_cast<std::uint32_t>(::gettid()), __ATOMIC_RELEASE);
  head_.futex_offset = reinterpret_cast<char*>(&control.collector) - reinterpret_cast<char*>(&entry_);
  if (::syscall(SYS_set_robust_list, &head_, sizeof head_) != 0)
    __atomic_store_n(&control.collector, 0, __ATOMIC_RELEASE);
}

EndMark::~EndMark() {
  ::syscall(SYS_set_robust_list, nullptr, sizeof head_);
  if (!is_left_) __atomic_fetch_or(&control_.collector, collector_has_ended, __ATOMIC_RELEASE);
}

bool EndMark::claim(Control& control) {
  std::uint32_t nobody = 0;
  return __atomic_compare_exchange_n(&control.collector, &nobody, static_cast<std::uint32_t>(::gettid()), false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void EndMark::leave() { is_left_ = true; }

}  // namespace cmt::collector
