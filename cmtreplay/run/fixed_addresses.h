#pragma once

#include <sys/personality.h>

namespace cmt::replay {

/// Processes that this thread starts while it lives get the same addresses each time, where that is allowed: an
/// allocator that draws random numbers from its addresses (jemalloc spreads its purges by them) then draws the same in
/// every run. A sandbox may forbid it.
class FixedAddresses {
 public:
  explicit FixedAddresses(bool wanted) : before_(wanted ? personality(unknown_persona) : -1) {
    if (before_ != -1) personality(static_cast<unsigned long>(before_) | ADDR_NO_RANDOMIZE);
  }
  ~FixedAddresses() {
    if (before_ != -1) personality(static_cast<unsigned long>(before_));
  }
  FixedAddresses(const FixedAddresses&) = delete;
  FixedAddresses& operator=(const FixedAddresses&) = delete;

 private:
  static constexpr unsigned long unknown_persona = 0xffffffff;  ///< only asks

  int before_;
};

}  // namespace cmt::replay
