// Reads hardware counters by perf_event_open(2).

#include "toolkit/process/counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cmt::process {
namespace {

struct Wanted {
  std::uint32_t type;
  std::uint64_t config;
};

constexpr std::uint64_t misses_of(std::uint64_t cache) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

constexpr std::array<Wanted, counter_names.size()> all_wanted{{
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {PERF_TYPE_HW_CACHE, misses_of(PERF_COUNT_HW_CACHE_L1D)},
    {PERF_TYPE_HW_CACHE, misses_of(PERF_COUNT_HW_CACHE_DTLB)},
}};

int open_counter(const Wanted& wanted, pid_t thread, Counters::Heirs heirs) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = wanted.type;
  attributes.config = wanted.config;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.inherit_thread = heirs == Counters::Heirs::threads;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::optional<std::uint64_t> read_counter(int fd) {
  std::array<std::uint64_t, 3> count_enabled_running{};
  if (fd < 0 || ::read(fd, count_enabled_running.data(), sizeof count_enabled_running) != sizeof count_enabled_running)
    return std::nullopt;
  const auto [count, enabled, running] = count_enabled_running;
  if (running == 0) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(count) * static_cast<double>(enabled) /
                                    static_cast<double>(running));
}

}  // namespace

Counters::Counters(pid_t thread, Heirs heirs) {
  bool any = false;
  int error = 0;
  for (std::size_t i = 0; i < all_wanted.size(); ++i) {
    fds_[i] = Fd(open_counter(all_wanted[i], thread, heirs));
    if (fds_[i].get() < 0 && error == 0) error = errno;
    any = any || fds_[i].get() >= 0;
  }
  if (!any) error_ = error;
}

std::string Counters::missing() const { return error_ == 0 ? std::string() : std::strerror(error_); }

void Counters::start() const {
  for (const Fd& fd : fds_) {
    if (fd.get() >= 0) ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0);
  }
}

CounterValues Counters::read() const {
  CounterValues values;
  for (std::size_t i = 0; i < fds_.size(); ++i) values[i] = read_counter(fds_[i].get());
  return values;
}

CounterValues Counters::stop() const {
  for (const Fd& fd : fds_) {
    if (fd.get() >= 0) ioctl(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
  }
  return read();
}

}  // namespace cmt::process
