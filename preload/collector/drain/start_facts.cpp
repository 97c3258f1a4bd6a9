// Copies the fields, and checks the copies: the program may change what is shared in between.

#include "preload/collector/drain/start_facts.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "preload/collector/drain/ring_memory.h"

namespace cmt::collector {
namespace {

/// Returns false if the text does not end within the field.
template <std::size_t bytes>
bool take(const char (&field)[bytes], std::string& text) {
  const std::size_t length = ::strnlen(field, bytes);
  text.assign(field, length);
  text.resize(std::min(text.find('\0'), text.size()));
  return length < bytes;
}

std::string link_of(const std::string& path) {
  char target[64] = {};
  return ::readlink(path.c_str(), target, sizeof target - 1) > 0 ? target : "";
}

/// Returns by how much the CLOCK_MONOTONIC of a process (a folder of /proc) is ahead of that of the first time
/// namespace. Nothing if the file is about another namespace, that of the process's children.
std::optional<std::uint64_t> offset_ns(const std::string& folder) {
  std::ifstream offsets(folder + "/timens_offsets");
  std::string clock;
  std::int64_t seconds = 0, ns = 0;
  const std::string own = link_of(folder + "/ns/time");
  if (own.empty() || own != link_of(folder + "/ns/time_for_children")) return std::nullopt;
  if (!(offsets >> clock >> seconds >> ns)) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * 1'000'000'000 + static_cast<std::uint64_t>(ns);
}

/// A time of the program, as our clock has it. The program may be in another time namespace (time_namespaces(7)). If
/// that is not known, the time is at most now.
std::uint64_t in_our_time(std::uint64_t ns, std::uint32_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  const std::string theirs = link_of(folder + "/ns/time");
  if (!theirs.empty() && theirs != link_of("/proc/self/ns/time")) {
    const auto from = offset_ns(folder), to = offset_ns("/proc/self");
    if (from && to) ns += *to - *from;
  }
  return std::min(ns, clock_ns());
}

}  // namespace

std::optional<StartFacts> StartFacts::read(const Control& control) {
  StartFacts facts;
  facts.process = process_of(&control);
  facts.own_process = control.process;
  facts.is_outside = control.process_outside != 0;
  facts.start_stamp = control.start_stamp;
  facts.own_start_ns = facts.start_ns = control.start_ns;
  facts.start_wall = control.start_wall;
  facts.rings_limit = control.rings_limit;
  facts.forked = control.forked;
  facts.outputs = control.outputs;
  facts.stacks_at = control.stacks_at;
  facts.touched_min = control.touched_min;
  facts.sample_bytes = control.sample_bytes;
  facts.has_stacks_of_frees = control.stacks_of_frees != 0;
  facts.clock_is_ns = control.clock_is_ns != 0;
  facts.has_made_control = control.made_control != 0;
  bool is_sound = facts.rings_limit <= rings_max && facts.outputs <= outputs_max &&
                  take(control.program, facts.program) && take(control.allocator, facts.allocator) &&
                  take(control.command, facts.command) && take(control.rings_path, facts.rings_path) &&
                  take(control.control_path, facts.control_path) && take(control.status_path, facts.status_path) &&
                  take(control.pprof_path, facts.pprof_path);
  for (std::size_t i = 0; i < std::size(control.paths); ++i)
    is_sound = is_sound && take(control.paths[i], facts.paths[i]);
  return is_sound ? std::optional(facts) : std::nullopt;
}

void StartFacts::convert_start() { start_ns = in_our_time(own_start_ns, process); }

}  // namespace cmt::collector
