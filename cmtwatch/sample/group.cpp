// Adds up processes by their control group, and words a group.
#include "cmtwatch/sample/group.h"

#include <algorithm>
#include <utility>

#include "toolkit/output/numbers.h"

namespace cmt::watch {

void GroupSums::add(int pid, std::uint64_t bytes) {
  if (is_useful()) add(groups_.group_of(pid), bytes);
}

void GroupSums::add(std::string_view cgroup, std::uint64_t bytes) { add(process::group_in(cgroup), bytes); }

void GroupSums::add(const std::optional<process::GroupPlace>& place, std::uint64_t bytes) {
  if (!place) return;
  auto sum = std::find_if(sums_.begin(), sums_.end(), [&place](const Sum& one) { return one.place == *place; });
  if (sum == sums_.end()) sum = sums_.insert(sum, {.place = *place});
  sum->bytes += bytes;
  ++sum->processes;
}

std::vector<GroupReading> GroupSums::take() {
  std::vector<GroupReading> groups;
  for (const Sum& sum : std::exchange(sums_, {})) {
    auto memory = groups_.read(sum.place);
    if (memory) groups.push_back({std::move(*memory), sum.bytes, sum.processes});
  }
  return groups;
}

std::string group_text(const GroupReading& group, std::string_view metric,
                       const std::function<std::string(std::uint64_t)>& amount) {
  const process::GroupMemory& memory = group.memory;
  std::string text =
      "control group " + memory.path + " (version " + std::to_string(memory.version) + "): " + amount(memory.current);
  if (memory.peak) text += ", peak " + amount(*memory.peak);
  if (memory.limit) text += ", limit " + amount(*memory.limit);
  const std::pair<const char*, process::GroupMemory::Bytes> parts[] = {
      {"anon", memory.anon}, {"file", memory.file}, {"shmem", memory.shmem}, {"kernel", memory.kernel},
      {"slab", memory.slab}, {"sock", memory.sock}, {"swap", memory.swap}};
  std::string separator = ": ";
  for (const auto& [name, bytes] : parts) {
    if (!bytes) continue;
    text += separator + name + " " + amount(*bytes);
    separator = ", ";
  }
  if (metric.empty()) return text;
  std::string processes = output::counted(group.measured_processes, "measured process");
  if (memory.processes && *memory.processes > group.measured_processes)
    processes += " of " + output::with_commas(*memory.processes);
  const std::string figure = " the " + std::string(metric) + " of " + processes;
  const std::int64_t beyond = group.beyond_bytes();
  if (beyond >= 0) return text + "; " + amount(static_cast<std::uint64_t>(beyond)) + " of it are not in" + figure;
  return text + ";" + figure + " is " + amount(static_cast<std::uint64_t>(-beyond)) +
         " more: other groups are charged for pages that are shared";
}

}  // namespace cmt::watch
