// The mark by which a program's threads see that its collector has ended.
#pragma once

#include <linux/futex.h>

#include <cstdint>

#include "preload/protocol.h"

namespace cmt::collector {

/// Marks the end of the calling thread in Control::collector. If the thread is killed, the kernel sets the mark: the
/// word is the only entry of the thread's list of robust futexes. The list replaces glibc's, which is for mutexes that
/// the collector does not have.
class EndMark {
 public:
  enum class Taking { from_anyone, if_free };
  /// Takes the word from whoever has it, or if nobody has it. In this order: first the list, so that at no moment the
  /// word is this thread's and its end would not be marked.
  EndMark(Control& control, Taking taking);
  /// Marks the end, unless another thread has taken the word.
  ~EndMark();
  EndMark(const EndMark&) = delete;
  EndMark& operator=(const EndMark&) = delete;

  /// Whether the word is this thread's.
  bool is_taken() const { return __atomic_load_n(&control_.collector, __ATOMIC_ACQUIRE) == thread_; }
  /// Whether the kernel has robust futexes. Emulators do not.
  static bool is_known_to_kernel();

 private:
  Control& control_;
  const std::uint32_t thread_;
  robust_list_head head_{.list = {&entry_}, .futex_offset = 0, .list_op_pending = nullptr};
  robust_list entry_{&head_.list};
};

}  // namespace cmt::collector
