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
  /// Takes the word from whoever has it.
  explicit EndMark(Control& control);
  /// Marks the end.
  ~EndMark();
  EndMark(const EndMark&) = delete;
  EndMark& operator=(const EndMark&) = delete;

  /// Takes the word, if nobody has it, and returns whether it did.
  static bool claim(Control& control);
  /// Leaves the word to another thread, which has taken it. Its end is not this thread's.
  void leave();

 private:
  Control& control_;
  bool is_left_ = false;
  robust_list_head head_{.list = {&entry_}, .futex_offset = 0, .list_op_pending = nullptr};
  robust_list entry_{&head_.list};
};

}  // namespace cmt::collector
