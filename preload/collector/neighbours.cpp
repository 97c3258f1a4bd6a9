#include "preload/collector/neighbours.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "libcmt/trace/files.h"

namespace cmt::collector {
namespace {

bool is_keeper_of_ended(const std::string& process) {
  bool is_alive = false, is_inherited = false, blocks_all = false;
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) is_alive = line.find('Z') == line.npos;
    if (line.starts_with("PPid:")) is_inherited = line == "PPid:\t1";
    if (line.starts_with("SigBlk:"))
      blocks_all = std::strtoull(line.c_str() + 7, nullptr, 16) == keeper_blocked_signals;
  }
  return is_alive && is_inherited && blocks_all;
}

}  // namespace

bool has_busy_neighbour() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    const int process = std::atoi(name.c_str());
    if (process != 0 && process != ::getppid() && is_keeper_of_ended(name)) return true;
  }
  return false;
}

}  // namespace cmt::collector
