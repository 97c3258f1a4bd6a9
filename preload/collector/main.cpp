// cmttrace-collector --attach: reads the rings of a program that has loaded libcmttrace.so, and writes its trace. The
// library starts it, with the rings and the files open.
//
// cmttrace-collector --serve: the same for the short processes of a command, as their shared collector. Its standard
// input is a socket, its standard output a pipe. cmttrace starts it.
//
// cmttrace-collector --recover RINGS [OUT]...: `cmttrace --recover` becomes this.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/collector/end_mark.h"
#include "preload/collector/shared/server.h"

namespace {

using namespace cmt::collector;

// Lifts the soft limits, which the program may have set for itself. The hard limits, an administrator's, apply to the
// collector too.
void lift_limits() {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CPU, RLIMIT_STACK}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  }
}

// Stacks of the usual 8 MiB would be most of the address space that the collector needs.
void shrink_thread_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

// The collector's threads must not wait for each other in malloc (idle_worker.h). They must not take memory from the
// kernel and give it back all the time either.
void set_up_malloc() {
  ::mallopt(M_ARENA_MAX, 8);  // MALLOC_ARENA_MAX may ask for fewer
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

void set_up_process() {
  ::umask(077);  // the program's may take the owner's own rights
  // Signals that end the program may reach the collector too, but the collector still has to write the recorded events.
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGQUIT, SIGTERM}) std::signal(signal, SIG_IGN);
  sigset_t asks{};  // for the watch thread (collector.h)
  sigaddset(&asks, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &asks, nullptr);
  lift_limits();
  shrink_thread_stacks();
  set_up_malloc();
}

/// `description`: the descriptor of a file with a control block, from which StartFacts is read; empty: it is read from
/// the shared memory.
int attach(const std::string& description) {
  set_up_process();
  std::unique_ptr<Control> described;
  if (!description.empty()) {
    described = std::make_unique<Control>();
    if (::pread(std::atoi(description.c_str()), described.get(), sizeof *described, 0) != ssize_t{sizeof *described})
      return 1;
  }
  RingMemory memory(collector_memory, RingMemory::Access::shared, "rings", described.get());
  const EndMark mark(memory.control(), EndMark::Taking::from_anyone);
  std::vector<int> outputs;
  for (std::uint32_t i = 0; i < memory.start_facts().outputs; ++i)
    outputs.push_back(collector_output + static_cast<int>(i));
  const int process = ::fcntl(collector_process, F_GETFD) < 0 ? -1 : collector_process;
  run_session(memory, outputs, process);
  return 0;
}

// Reports an error in the name of cmttrace, which has become this program, and returns cmttrace's status.
int complain(const std::string& what) {
  std::fprintf(stderr, "cmttrace: %s\n", what.c_str());
  return 125;
}

int run_recovery(const std::string& rings, const std::vector<std::string>& outputs) {
  const Recovered recovered = recover(rings, outputs);
  std::printf("%s: %llu event%s, %llu of them from the rings\n", recovered.paths.front().c_str(),
              static_cast<unsigned long long>(recovered.events), recovered.events == 1 ? "" : "s",
              static_cast<unsigned long long>(recovered.from_rings));
  if (recovered.stacks_unknown != 0)
    std::printf("events whose stacks are not known: %llu\n", static_cast<unsigned long long>(recovered.stacks_unknown));
  if (std::fflush(stdout) != 0) return complain("standard output: cannot be written");
  if (recovered.rings_missing == 0) return 0;
  return complain(rings + ": is cut off: " + std::to_string(recovered.rings_missing) + " of its rings are missing");
}

int serve() {
  set_up_process();
  run_server(STDIN_FILENO, STDOUT_FILENO);
  return 0;
}

}  // namespace

// Not toolkit/command: Boost.Program_options would double the time that each start of the collector takes.
int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool attaches = !words.empty() && words.size() <= 2 && words[0] == "--attach",
             serves = words.size() == 1 && words[0] == "--serve";
  if (!attaches && !serves && (words.size() < 2 || words[0] != "--recover")) {
    complain("libcmttrace.so starts this program; to recover a trace, use 'cmttrace --recover=RINGS'");
    return 2;
  }
  try {
    if (serves) return serve();
    return attaches ? attach(words.size() == 2 ? words[1] : "")
                    : run_recovery(words[1], {words.begin() + 2, words.end()});
  } catch (const std::exception& error) {
    return attaches || serves ? 1 : complain(error.what());  // standard error is /dev/null; the program reports the end
  }
}
