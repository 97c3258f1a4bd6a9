#include "cmtreplay/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace cmt::replay {
Worker::Worker(const Stage& stage, const Allocator& allocator, std::span<const Mark> marks,
               const SharedMemory* pointers)
    : stage_(stage), slots_("slots", stage.trace.slots() * sizeof(void*)) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  talk_ = Fd(fds[0]);
  const Fd its_end(fds[1]);
  fcntl(its_end.get(), F_SETFD, 0);
  fill_control(allocator, marks, pointers);
  shared_->talk_fd = its_end.get();
  child_ = std::make_unique<Child>(
      Launch{.command = {stage.worker, std::to_string(shared_.fd())}, .preload = allocator.preload});
}

void Worker::fill_control(const Allocator& allocator, std::span<const Mark> marks, const SharedMemory* pointers) {
  control& control = *shared_.operator->();
  control.operations_fd = stage_.trace.operations().fd();
  control.slots_fd = slots_.fd();
  control.pointers_fd = pointers ? pointers->fd() : -1;
  control.target = allocator.null ? target_null : target_process;
  control.replaced = allocator.replaced;
  control.operation_words = stage_.trace.words();
  control.slot_count = stage_.trace.slots();
  control.pointer_count = stage_.trace.pointers();
  for (const Mark& mark : marks) control.marks[control.mark_count++] = mark.word;
  if (marks.empty() || marks.back().word < control.operation_words)
    control.marks[control.mark_count++] = control.operation_words;
}

std::optional<Death> Worker::wait_for_stop() {
  std::array<pollfd, 2> wanted{{{.fd = talk_.get(), .events = POLLIN, .revents = 0},
                                {.fd = stage_.interrupts.fd(), .events = POLLIN, .revents = 0}}};
  while (poll(wanted.data(), wanted.size(), -1) < 0 && errno == EINTR) continue;
  if (stage_.interrupts.pending()) throw Interrupted();
  char byte = 0;
  if (read(talk_.get(), &byte, 1) != 1) return death();
  if (shared_->setup_errno != 0)
    throw std::system_error(shared_->setup_errno, std::generic_category(), "the worker's memory");
  return std::nullopt;
}

/// A worker that is gone is seen by wait_for_stop().
void Worker::go() {
  started_ = true;
  const char byte = 'g';
  while (send(talk_.get(), &byte, 1, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

Death Worker::death() {
  return {.ending = child_->wait(), .event = started_ ? stage_.trace.event_at(shared_->position) : 0};
}

}  // namespace cmt::replay
