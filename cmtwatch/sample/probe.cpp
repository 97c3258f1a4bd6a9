// A descriptor of statm stays valid when the process executes another program, so it is kept open. smaps_rollup belongs
// to the address space that the process had when the file was opened, and execve ends that: it is opened anew each
// time.

#include "cmtwatch/sample/probe.h"

#include <signal.h>

#include <cerrno>
#include <stdexcept>

#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch {

bool means_gone(const std::system_error& error) {
  return error.code().value() == ENOENT || error.code().value() == ESRCH;
}

bool means_forbidden(const std::system_error& error) {
  return error.code().value() == EACCES || error.code().value() == EPERM;
}

void check_process(int pid, const std::string& root) {
  const std::string number = std::to_string(pid);
  process::Stat stat;
  try {
    stat = process::read_stat(pid, root);
  } catch (const std::system_error&) {
    const bool hidden = root == "/proc" && (kill(pid, 0) == 0 || errno == EPERM);
    throw std::runtime_error(hidden ? "process " + number + " is hidden: /proc is mounted with hidepid"
                                    : "there is no process " + number);
  }
  const std::string who = number + " (" + stat.name + ")";
  if (stat.kernel_thread) throw std::runtime_error(who + " is a kernel thread: it has no memory of its own");
  if (stat.zombie()) throw std::runtime_error(who + " has ended, and waits for its parent: its memory is gone");
}

Probe::Probe(int pid, Metric metric, const std::string& root) : metric_(metric), folder_(pid, root) {}

Reading Probe::read() {
  try {
    return {Reading::State::read, walks_page_tables(metric_) ? read_rollup() : read_without_page_tables()};
  } catch (const std::system_error& error) {
    return {means_gone(error) ? Reading::State::gone : Reading::State::refused, 0};
  }
}

const std::string& Probe::name() {
  is_there();
  return name_;
}

bool Probe::is_there() {
  try {
    const std::string_view text = folder_.read("comm", buffer_);
    name_ = text.substr(0, text.find('\n'));
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

std::uint64_t Probe::read_without_page_tables() {
  if (metric_ == Metric::swap) return process::parse_status(folder_.read("status", buffer_)).swapped_bytes;
  if (statm_.get() < 0) statm_ = process::Fd(folder_.open("statm"));
  const process::Statm statm = process::parse_statm(process::read_again(statm_.get(), buffer_));
  if (statm.size_pages == 0)  // it has ended, and its parent has not waited for it yet
    throw std::system_error(ESRCH, std::generic_category(), "statm");
  const std::uint64_t pages = metric_ == Metric::vm    ? statm.size_pages
                              : metric_ == Metric::rss ? statm.resident_pages
                                                       : statm.resident_pages - statm.shared_pages;
  return pages * process::page_bytes();
}

std::uint64_t Probe::read_rollup() {
  const auto mappings = process::parse_smaps(folder_.read("smaps_rollup", buffer_));
  if (mappings.empty()) throw std::system_error(ESRCH, std::generic_category(), "smaps_rollup");
  return metric_ == Metric::pss ? mappings[0].proportional_bytes : mappings[0].private_bytes;
}

}  // namespace cmt::watch
