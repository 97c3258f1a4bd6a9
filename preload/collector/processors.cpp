#include "preload/collector/processors.h"

#include <cstddef>

namespace cmt::collector {

Processors::Processors() : is_known_(::sched_getaffinity(0, sizeof allowed_, &allowed_) == 0) {}

void Processors::leave(const cpu_set_t& busy, int processor, pid_t thread) const {
  if (!is_known_ || processor < 0 || !CPU_ISSET(static_cast<std::size_t>(processor), &busy)) return;
  cpu_set_t busy_here, others;
  CPU_AND(&busy_here, &allowed_, &busy);
  CPU_XOR(&others, &allowed_, &busy_here);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(thread, sizeof others, &others) != 0) return;
  ::sched_setaffinity(thread, sizeof allowed_, &allowed_);
}

}  // namespace cmt::collector
