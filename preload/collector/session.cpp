#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "preload/collector/collector.h"
#include "preload/collector/drainer.h"
#include "preload/collector/encoder.h"
#include "preload/collector/watcher.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t backlog_memory_max = 64 << 20, spill_max = std::uint64_t{4} << 30;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The program has refused to record where a value cannot be read (environment.h).
std::uint64_t quantity(const char* name, const Unit* units, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  return read_quantity(variable(name), units, &value) ? value : otherwise;
}

Settings read_settings() {
  Settings settings;
  settings.has_times = variable("CMTTRACE_TIME") == std::string_view("1");
  settings.sample_ns = quantity("CMTTRACE_SAMPLE", units_of_time, 0);
  settings.bytes_max = quantity("CMTTRACE_MAX_BYTES", units_of_size, Settings::no_limit);
  settings.events_max = quantity("CMTTRACE_MAX_EVENTS", units_of_count, Settings::no_limit);
  settings.time_ns_max = quantity("CMTTRACE_MAX_TIME", units_of_time, Settings::no_limit);
  settings.spill_bytes_max = quantity("CMTTRACE_SPILL", units_of_size, Settings::no_limit);
  return settings;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// The bound of the backlog's file: as was asked for, or a quarter of what the disk has free.
std::uint64_t spill_bytes_max(const Settings& settings, const std::string& folder) {
  if (settings.spill_bytes_max != Settings::no_limit) return settings.spill_bytes_max;
  struct statvfs disk {};
  const bool is_known = ::statvfs(folder.c_str(), &disk) == 0;
  return is_known ? std::min<std::uint64_t>(spill_max, disk.f_bavail * disk.f_frsize / 4) : spill_max;
}

/// Appends a line to the status file (CMTTRACE_STATUS), for cmttrace and for tests.
void report(const Control& control, const EncodeThread& encoder, const DrainThread& drainer, int wait_status) {
  if (control.status_path[0] == 0) return;
  const int fd = ::open(control.status_path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  const Totals& totals = encoder.outputs().totals();
  const Repairs& repairs = encoder.order().repairs();
  const std::string line =
      "pid=" + std::to_string(control.process) + " events=" + std::to_string(totals.events) +
      " threads=" + std::to_string(totals.threads) + " bytes=" + std::to_string(encoder.outputs().bytes()) +
      " time_ns=" + std::to_string(clock_ns() - control.start_ns) + " lost=" + std::to_string(encoder.lost_events()) +
      " repairs=" + std::to_string(repairs.total()) + " inversions=" + std::to_string(encoder.order().inversions()) +
      " doubts=" + std::to_string(repairs[Repair::order_race]) + " leases=" + std::to_string(control.leases) +
      " wait_status=" + std::to_string(wait_status) + " drain_cpu_ns=" + std::to_string(drainer.cpu_ns()) +
      " cpu_ns=" + std::to_string(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) + " failed=" + std::to_string(encoder.error()) +
      " path=" + control.paths[0] + "\n";
  static_cast<void>(::write(fd, line.data(), line.size()) < 0);
  ::close(fd);
}

}  // namespace

void run_session(RingMemory& memory, const std::vector<int>& outputs, int process_fd) {
  Control& control = memory.control();
  const Settings settings = read_settings();
  const std::string folder = folder_of(control.paths[0]);
  control.times = settings.has_times;
  SessionState state{.encode_thread = ::gettid()};
  Backlog backlog(folder, backlog_memory_max, spill_bytes_max(settings, folder));
  EncodeThread encoder(memory, backlog, state, outputs, settings);
  DrainThread drainer(memory, backlog, state, outputs);
  WatchThread watcher(memory, backlog, state, process_fd, settings.sample_ns);
  std::thread drains([&] { drainer.run(); });
  std::thread watches([&] { watcher.run(); });
  encoder.run();
  watcher.stop();
  memory.ring_bell();
  drains.join();
  watches.join();
  if (control.made_control != 0) ::unlink(control.control_path);
  if (memory.is_recoverable()) ::unlink(control.rings_path);
  report(control, encoder, drainer, state.wait_status);
}

}  // namespace cmt::collector
