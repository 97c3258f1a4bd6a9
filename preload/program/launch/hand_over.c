// Sends the message, and waits for the answer, by system calls only.
#include "preload/program/launch/hand_over.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "preload/hand_over.h"
#include "preload/program/kernel.h"
#include "preload/program/settings.h"
#include "preload/text.h"

enum { answer_us_max = 200000, close_on_exec = SOCK_CLOEXEC };

// Under a filter of system calls, a socket may be forbidden, and its maker killed. The launcher has made one under the
// filters that it has, as in a container. Their number is at the end of the socket's name.
static bool may_make_socket(const char* path) {
  const char* dot = strrchr(path, '.');
  const int own = system_call_filters();
  uint64_t launchers;
  if (own == 0) return true;
  return dot && own > 0 && read_quantity(dot + 1, units_of_count, &launchers) && launchers == (uint64_t)own;
}

static bool may_connect(const struct Control* control) {
  return !sandbox_entered && !path_is_given(path_rings) && setting_is_given(setting_shared) &&
         control->paths[0][0] == '/' && may_make_socket(setting_value(setting_shared));
}

static long connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
  strcpy(address.sun_path, path);
  const long fd = sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | close_on_exec, 0);
  if (fd < 0) return fd;
  const struct timeval most = {.tv_usec = answer_us_max};
  sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  const long failed = sys(SYS_connect, fd, &address, sizeof address);
  if (failed) sys(SYS_close, fd);
  return failed ? failed : fd;
}

static bool send_to(long fd, const struct HandOver* message, const int* descriptors, int count) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(hand_over_descriptors_max * sizeof(int))];
  } control = {0};
  struct iovec text = {(void*)(uintptr_t)message, sizeof *message};
  const size_t bytes = (size_t)count * sizeof(int);
  struct msghdr sent = {
      .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(bytes)};
  control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&control.header), descriptors, bytes);
  return sys(SYS_sendmsg, fd, &sent, MSG_NOSIGNAL) == (long)sizeof *message;
}

static bool is_answered(long fd) {
  char answer;
  return sys(SYS_recvfrom, fd, &answer, sizeof answer) == 1;  // a signal ends the wait too
}

bool hand_over(struct Control* control, const int* descriptors, int count) {
  if (count > hand_over_descriptors_max || descriptors[1] < 0 || !may_connect(control)) return false;
  const long fd = connect_to(setting_value(setting_shared));
  if (fd < 0) return false;
  struct HandOver message = {
      .settings = sum_of_settings(setting_value), .process = control->process, .outputs = control->outputs};
  memcpy(message.magic, ring_magic, sizeof message.magic);
  const bool is_taken = send_to(fd, &message, descriptors, count) && is_answered(fd);
  sys(SYS_close, fd);
  uint32_t nobody = 0;
  return is_taken || !__atomic_compare_exchange_n(&control->collector, &nobody, collector_is_own, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
