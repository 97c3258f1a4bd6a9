// cmttrace-collector: reads the rings of a program that has loaded libcmttrace.so, and writes its trace. The library
// starts it, with the rings and the files open. By hand it is started only to recover a trace.
#include <fcntl.h>
#include <getopt.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "preload/collector/collector.h"

namespace {

using namespace cmt::collector;

// The limits that the program has set for itself are not the collector's. The hard ones, an administrator's, are.
void lift_limits() {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CPU, RLIMIT_STACK}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  }
}

int attach() {
  // Signals that end the program may reach the collector too, which still has to write what was recorded.
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGQUIT, SIGTERM}) std::signal(signal, SIG_IGN);
  lift_limits();
  RingMemory memory(collector_memory, RingMemory::Access::shared, "rings");
  std::vector<int> outputs;
  for (std::uint32_t i = 0; i < memory.control().outputs; ++i)
    outputs.push_back(collector_output + static_cast<int>(i));
  const int process = ::fcntl(collector_process, F_GETFD) < 0 ? -1 : collector_process;
  run_session(memory, outputs, process);
  return 0;
}

const char help_text[] =
    R"(Usage: cmttrace-collector --recover RINGS [-o OUT]...

Writes the trace of a program that ended together with its collector, from the
file that CMTTRACE_RINGS=RINGS kept and from the trace's own files. In all other
cases libcmttrace.so starts this program.

      --recover=RINGS  the file with the rings; it is not changed
  -o, --output=OUT     write to OUT; a name that ends in .cmt gets the compact
                       form. Without it app.7.cmt becomes app.7.recovered.cmt.
                       No file is overwritten
  -h, --help           show this help
      --version        show the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

int complain(const std::string& what) {
  std::fprintf(stderr, "cmttrace-collector: %s\n", what.c_str());
  return 1;
}

int wrong_use(const char* what) {
  complain(what);
  std::fputs("Try 'cmttrace-collector --help' for more information.\n", stderr);
  return 2;
}

int run_recovery(const std::string& rings, const std::vector<std::string>& outputs) {
  const Recovered recovered = recover(rings, outputs);
  std::printf("%s: %llu events, %llu of them from the rings\n", recovered.paths.front().c_str(),
              static_cast<unsigned long long>(recovered.events), static_cast<unsigned long long>(recovered.from_rings));
  if (std::fflush(stdout) != 0) return complain("standard output: cannot be written");
  if (recovered.rings_missing == 0) return 0;
  return complain(rings + ": is cut off: " + std::to_string(recovered.rings_missing) + " of its rings are missing");
}

// getopt, not toolkit/command: Boost.Program_options would double the time that each start of the collector takes.
int run_by_hand(int argc, char** argv) {
  const option options[] = {{"recover", required_argument, nullptr, 'r'},
                            {"output", required_argument, nullptr, 'o'},
                            {"help", no_argument, nullptr, 'h'},
                            {"version", no_argument, nullptr, 'v'},
                            {nullptr, 0, nullptr, 0}};
  std::string rings;
  std::vector<std::string> outputs;
  opterr = 0;
  for (int letter = 0; (letter = getopt_long(argc, argv, "o:h", options, nullptr)) != -1;) {
    if (letter == 'h') return std::fputs(help_text, stdout) < 0 ? 1 : 0;
    if (letter == 'v') return std::puts("cmttrace-collector " CMT_VERSION) < 0 ? 1 : 0;
    if (letter == '?') return wrong_use("unknown option, or an option without its value");
    if (letter == 'r') rings = optarg;
    if (letter == 'o') outputs.emplace_back(optarg);
  }
  if (rings.empty()) return wrong_use("--recover=RINGS is missing (otherwise libcmttrace.so starts this program)");
  if (optind != argc) return wrong_use("too many arguments");
  try {
    return run_recovery(rings, outputs);
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "--attach") != 0) return run_by_hand(argc, argv);
  try {
    return attach();
  } catch (const std::exception&) {
    return 1;  // standard error is /dev/null; the program reports that the collector has ended
  }
}
