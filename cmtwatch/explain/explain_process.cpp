// Looks at a process that runs: its name, its memory, and what else the kernel reports of it.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "cmtwatch/explain/explanation.h"
#include "cmtwatch/explain/heap/thread_stacks.h"
#include "cmtwatch/explain/memory/huge_pages.h"
#include "cmtwatch/sample/pause.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch::explain {
namespace {

/// A figure of /proc/PID/status in bytes: "VmPTE:     180 kB". 0: it has none.
std::uint64_t status_bytes(const std::string& status, const std::string& key) {
  const auto at = status.find("\n" + key + ":");
  return at == status.npos ? 0 : 1024 * std::strtoull(status.c_str() + at + key.size() + 2, nullptr, 10);
}

/// Whether the control block of each thread was found. A thread that runs has no known place on its stack.
bool knows_all_threads(AddressSpace& memory) {
  std::size_t alive = 0;
  for (const LibcThread& thread : find_libc_threads(memory)) alive += !thread.has_ended;
  return alive >= memory.threads().size();
}

void stop_all(Pause& pause, int pid) {
  pause.stop_all([pid] { return std::vector<int>{pid}; }, {pid});
}

/// Finds threads that run: they wait now and then. If some never do, all threads are stopped for a moment. Returns for
/// how long. A stop says nothing more about threads that wait.
std::int64_t find_running_threads(AddressSpace& memory, int pid) {
  if (!maps_glibc(memory)) return 0;  // threads of others have no such control blocks
  constexpr int waits = 5;
  for (int i = 0;; ++i) {
    const bool all_wait = std::none_of(memory.threads().begin(), memory.threads().end(),
                                       [](const Thread& thread) { return thread.stack_pointer == 0; });
    if (all_wait || knows_all_threads(memory)) return 0;
    if (i == waits) break;
    ::usleep(1000);
    memory.find_threads();
  }
  process::InterruptedCalls calls;
  try {
    return while_paused(calls, [&](Pause& pause) {
      stop_all(pause, pid);
      memory.find_threads();
    });
  } catch (const PauseRefused&) {
    return 0;  // another process traces it, or cmtwatch does until a command's end: the doubts count these threads
  }
}

void add_figures(Explanation& explanation, int pid) {
  explanation.pid = pid;
  explanation.wall_ns = process::clock_ns(CLOCK_REALTIME);
  explanation.program = process::read_stat(pid).name;
  const int thread = living_thread(pid);
  explanation.page_table_bytes = status_bytes(process::read_file(process::path_of(thread, "status")), "VmPTE");
  process::GroupReader groups;
  if (const auto place = groups.group_of(thread)) explanation.group = groups.read(*place);
}

Explanation explain_memory(AddressSpace& memory, const ExplainRights& rights, BlockSites* sites) {
  Explanation explanation = explain(memory, sites);
  if (rights.counts_zeros) explanation.huge_zero_bytes = zero_bytes_in_huge_pages(memory);
  if (rights.counts_zeros && !explanation.huge_zero_bytes)
    explanation.doubts.push_back("the kernel does not say which pages are huge: their zeros were not counted");
  return explanation;
}

/// Looks once.
Explanation look(int pid, const ExplainRights& rights, BlockSites* sites) {
  Explanation explanation;
  if (rights.stops) {
    process::InterruptedCalls calls;
    const std::int64_t stopped_ns = while_paused(calls, [&](Pause& pause) {
      stop_all(pause, pid);
      explanation = explain_memory(*open_process(pid), rights, sites);  // its mappings are those of the stop
    });
    explanation.stopped_ns = stopped_ns;
  } else {
    const auto memory = open_process(pid);
    const std::int64_t stopped_ns = rights.are_stopped ? 0 : find_running_threads(*memory, pid);
    explanation = explain_memory(*memory, rights, sites);
    explanation.stopped_ns = stopped_ns;
  }
  return explanation;
}

/// Whether a call of malloc_trim(3) would reach a malloc that does not serve the process.
bool has_other_malloc(const Explanation& explanation) {
  return !explanation.heap && (explanation.why_no_heap == NoGlibc::not_used || !explanation.other_malloc.empty());
}

}  // namespace

Explanation explain_process(int pid, const ExplainRights& rights, BlockSites* sites) {
  constexpr int looks_max = 3;  // a heap that has grown since the mappings were read is not recognised
  try {
    Explanation explanation = look(pid, rights, sites);
    for (int looks = 1;
         looks < looks_max && explanation.why_no_heap == NoGlibc::not_used && explanation.other_malloc.empty(); ++looks)
      explanation = look(pid, rights, sites);
    add_figures(explanation, pid);
    const bool asks = rights.calls && (!explanation.heap || !explanation.other_malloc.empty());
    explanation.is_trim_refused = rights.trims && has_other_malloc(explanation);
    const bool trims = rights.trims && !explanation.is_trim_refused;
    if ((asks || trims) && living_thread(pid) != pid)
      throw std::runtime_error("process " + std::to_string(pid) +
                               ": its first thread has ended: no function can be called in it");
    if (asks) explanation.allocator = ask_allocator(pid);
    if (trims) explanation.trim = call_malloc_trim(pid);
    return explanation;
  } catch (const std::system_error&) {
    if (!has_ended(pid)) throw;
    throw std::runtime_error("process " + std::to_string(pid) + " does not exist any more");
  }
}

bool has_ended(int pid) {
  try {
    return process::read_stat(living_thread(pid)).zombie();
  } catch (const std::system_error&) {
    return true;
  }
}

Explanation explain_core(const std::string& path, BlockSites* sites) {
  const auto memory = open_core(path);
  Explanation explanation = explain(*memory, sites);
  explanation.core_pid = memory->core_pid();
  explanation.program = path.substr(path.rfind('/') + 1);
  return explanation;
}

}  // namespace cmt::watch::explain
