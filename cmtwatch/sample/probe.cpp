// statm is cheap, and a descriptor of it stays good when the process runs another program, so that one is kept open.
// smaps_rollup belongs to the address space of the moment when it was opened, which ends with exec: it is opened anew.

#include "cmtwatch/sample/probe.h"

#include <system_error>

#include "cmtwatch/sample/proc_errors.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch {

Probe::Probe(int pid, Metric metric, const std::string& root) : pid_(pid), metric_(metric), folder_(pid, root) {}

Reading Probe::read() {
  try {
    if (!is_dear(metric_)) return read_cheap();
    return {Reading::State::read, read_rollup()};
  } catch (const std::system_error& error) {
    return {says_gone(error) ? Reading::State::gone : Reading::State::refused, 0};
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
  } catch (const std::system_error&) {  // the last name stays
    return false;
  }
}

Reading Probe::read_cheap() {
  if (metric_ == Metric::swap) {
    return {Reading::State::read, process::parse_status(folder_.read("status", buffer_)).swapped_bytes};
  }
  if (statm_.get() < 0) statm_ = process::Fd(folder_.open("statm"));
  const process::Statm statm = process::parse_statm(process::read_again(statm_.get(), buffer_));
  if (statm.size_pages == 0) return {};  // a process that has ended and was not waited for yet
  const std::uint64_t pages = metric_ == Metric::vm    ? statm.size_pages
                              : metric_ == Metric::rss ? statm.resident_pages
                                                       : statm.resident_pages - statm.shared_pages;
  return {Reading::State::read, pages * process::page_bytes()};
}

std::uint64_t Probe::read_rollup() {
  const auto mappings = process::parse_smaps(folder_.read("smaps_rollup", buffer_));
  if (mappings.empty()) throw std::system_error(ESRCH, std::generic_category(), "smaps_rollup");
  return metric_ == Metric::pss ? mappings[0].proportional_bytes : mappings[0].private_bytes;
}

}  // namespace cmt::watch
