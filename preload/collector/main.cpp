// cmttrace-collector: reads the rings of a program that libcmttrace.so is loaded into, and writes its trace. It is
// started by the library, with the rings and the files open, and by nobody else.
#include <fcntl.h>
#include <getopt.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "preload/collector/recovery.h"
#include "preload/collector/collector.h"

namespace {

using namespace cmt::collector;

// The program's limits are its own; what its collector may have beyond is the administrator's.
void lift_limits() {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CPU, RLIMIT_STACK}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  }
}

int attach() {
  // Whoever ends the program ends it, and what it has recorded is still to be written.
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGQUIT, SIGTERM}) std::signal(signal, SIG_IGN);
  lift_limits();
  Memory memory(collector_memory, Memory::Use::together, "rings");
  std::vector<int> outputs;
  for (std::uint32_t i = 0; i < memory.control().outputs; ++i)
    outputs.push_back(collector_output + static_cast<int>(i));
  const int process = ::fcntl(collector_process, F_GETFD) < 0 ? -1 : collector_process;
  Session session(memory, outputs, process, Settings::from_environment());
  session.run();
  return 0;
}

const char help_text[] =
    R"(Usage: cmttrace-collector --recover RINGS [-o OUT]...

Reads the rings that a program left which ended together with its collector, as
CMTTRACE_RINGS=RINGS kept them, and writes its whole trace. Otherwise this
program is started by libcmttrace.so, and by nobody else.

      --recover=RINGS  the file with the rings; it stays as it is
  -o, --output=OUT     where to; a name that ends in .cmt gets the compact form.
                       Without it: app.7.cmt as app.7.recovered.cmt. No file is
                       written over
  -h, --help           say this
      --version        say the version

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

// By getopt and not by libcmt/command, whose library would make each start take twice as long.
int by_hand(int argc, char** argv) {
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
    if (letter == '?') return wrong_use("unknown option, or one without its value");
    if (letter == 'r') rings = optarg;
    if (letter == 'o') outputs.emplace_back(optarg);
  }
  if (rings.empty()) return wrong_use("started by libcmttrace.so, and by hand only with --recover");
  if (optind != argc) return wrong_use("too many words");
  try {
    return run_recovery(rings, outputs);
  } catch (const OutputError& error) {
    return complain(error.path + ": " + std::generic_category().message(error.error));
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "--attach") != 0) return by_hand(argc, argv);
  try {
    return attach();
  } catch (const std::exception&) {
    return 1;  // its descriptors are /dev/null; the program says that the collector has ended
  }
}
