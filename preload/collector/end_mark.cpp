// Replaces the list of robust futexes, which a thread has one of.

#include "preload/collector/end_mark.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace cmt::collector {

EndMark::EndMark(Control& control, Taking taking) : control_(control), thread_(static_cast<std::uint32_t>(::gettid())) {
  head_.futex_offset = reinterpret_cast<char*>(&control.collector) - reinterpret_cast<char*>(&entry_);
  if (::syscall(SYS_set_robust_list, &head_, sizeof head_) != 0) return;
  std::uint32_t nobody = 0;
  if (taking == Taking::from_anyone)
    __atomic_store_n(&control.collector, thread_, __ATOMIC_RELEASE);
  else
    __atomic_compare_exchange_n(&control.collector, &nobody, thread_, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

EndMark::~EndMark() {
  std::uint32_t own = thread_;
  __atomic_compare_exchange_n(&control_.collector, &own, thread_ | collector_has_ended, false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  ::syscall(SYS_set_robust_list, nullptr, sizeof head_);
}

bool EndMark::is_known_to_kernel() { return ::syscall(SYS_set_robust_list, nullptr, sizeof(robust_list_head)) == 0; }

}  // namespace cmt::collector
