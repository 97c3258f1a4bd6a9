// Runs the tools on mutants of inputs, in this process, and reports each mutant that breaks a bound.
//
//     mutants PLAN FINDINGS MUTANTS [SEED]
//
// A line of PLAN is an input's kind, its file, and a command in which @ is the mutant:
//
//     text small.trace lifetimes --summary @
//     watch recording.db cmtreport --watch=@ small.trace
//
// The mutants are shared out evenly among the kinds, and within a kind among its lines. A child process runs some
// mutants one after the other; a crash or an endless loop ends only the child. There are three bounds:
//
//   - The exit status is 0, 1, or 3 (lifetimes --baseline).
//   - The memory is at most 64 MiB. No mutant of these small inputs has more live blocks than fit.
//   - The processor time is at most 10 s a MB of input, and 10 s in any case. Sanitizers get four times as much.
//
// A mutant beyond the bound of memory is run again in a child of its own, since freed memory of earlier ones counts
// too. Findings are written to the folder FINDINGS.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "tests/fuzz/mutants/mutate.h"

int trace2cmt_main(int argc, char** argv);
int lifetimes_main(int argc, char** argv);
int overhead_main(int argc, char** argv);
int cmtreport_main(int argc, char** argv);

#if defined(__SANITIZE_ADDRESS__)
#define CMT_MUTANTS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CMT_MUTANTS_ASAN 1
#endif
#endif

#ifdef CMT_MUTANTS_ASAN
extern "C" const char* __asan_default_options();
/// Freed memory that a sanitizer keeps is not the tool's.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:detect_leaks=0:allocator_may_return_null=1";
}
constexpr double slower = 4;
constexpr std::uint64_t bytes_max = std::uint64_t{256} << 20;  // shadow and red zones are memory too
#else
constexpr double slower = 1;
constexpr std::uint64_t bytes_max = std::uint64_t{64} << 20;
#endif

namespace {

constexpr std::size_t mutants_a_child = 64;

using Main = int (*)(int, char**);
const std::map<std::string, Main> tools{{"trace2cmt", trace2cmt_main},
                                        {"lifetimes", lifetimes_main},
                                        {"overhead", overhead_main},
                                        {"cmtreport", cmtreport_main}};

struct Line {
  std::string kind, file;
  std::vector<std::string> words;
  std::string bytes;
};

/// A child's progress, in memory that it shares with its parent.
struct Progress {
  std::size_t next;  // the mutant that runs
  std::uint64_t bytes_most, rejected;
  double seconds_most;
  std::uint64_t bytes;  // of the mutant that broke a bound
  double seconds;
  int status;
};

struct Figures {
  std::size_t mutants = 0, crashes = 0, large = 0, slow = 0, wrong = 0, rejected = 0;
  std::uint64_t bytes_most = 0;
  double seconds_most = 0;
};

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Line> read_plan(const std::string& path) {
  std::vector<Line> plan;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.kind >> line.file;
    for (std::string word; words >> word;) line.words.push_back(word);
    line.bytes = read_whole(line.file);
    if (!line.words.empty() && tools.contains(line.words[0])) plan.push_back(line);
  }
  return plan;
}

bool is_right(int status) { return status == 0 || status == 1 || status == 3; }

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The most memory since forget_peak().
std::uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

volatile std::sig_atomic_t is_interrupted = 0;

class Runner {
 public:
  Runner(std::vector<Line> plan, std::string findings, unsigned seed)
      : plan_(std::move(plan)), findings_(std::move(findings)), seed_(seed) {
    for (const Line& line : plan_) bytes_of_kind_[line.kind].push_back(line.bytes);
    path_ = "/dev/shm/cmt.mutant." + std::to_string(getpid());
    progress_ = static_cast<Progress*>(
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~Runner() { unlink(path_.c_str()); }

  bool run(std::size_t mutants) {
    std::map<std::string, std::size_t> lines_of_kind;
    for (const Line& line : plan_) ++lines_of_kind[line.kind];
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { is_interrupted = 1; });
    // In passes over the plan, so that the kinds have equal shares also if the run is ended.
    std::size_t shares_left = plan_.size();
    for (std::size_t begin = 0; shares_left != 0 && !is_interrupted; begin += mutants_a_child) {
      shares_left = 0;
      for (std::size_t i = 0; i < plan_.size() && !is_interrupted; ++i) {
        const std::size_t share = mutants / lines_of_kind.size() / lines_of_kind[plan_[i].kind] + 1;
        run_line(i, begin, std::min(share, begin + mutants_a_child));
        shares_left += share > begin + mutants_a_child;
        print_progress(mutants);
      }
    }
    return print_figures();
  }

 private:
  std::string mutant(std::size_t line, std::size_t number) const {
    const auto seed = static_cast<unsigned>(seed_ + line * 1'000'003 + number);
    return cmt::fuzz::Mutator(seed, bytes_of_kind_.at(plan_[line].kind)).mutate(plan_[line].bytes);
  }

  void run_line(std::size_t line, std::size_t next, std::size_t end) {
    Figures& figures = figures_[plan_[line].kind];
    while (next < end && !is_interrupted) {
      const int status = run_child(line, next, end);
      figures.bytes_most = std::max(figures.bytes_most, progress_->bytes_most);
      figures.seconds_most = std::max(figures.seconds_most, progress_->seconds_most);
      figures.rejected += progress_->rejected;
      figures.mutants += std::min(progress_->next + 1, end) - next;
      next = progress_->next + 1;
      if (is_interrupted || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
      judge(figures, line, progress_->next, status);
    }
  }

  /// Reports the mutant at which a child has ended.
  void judge(Figures& figures, std::size_t line, std::size_t number, int status) {
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
      return ++figures.slow, report(line, number, "is slow");
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != 3)
      return ++figures.crashes,
             report(line, number, WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "sanitizer");
    if (!is_right(progress_->status))
      return ++figures.wrong, report(line, number, "status " + std::to_string(progress_->status));
    if (progress_->seconds > seconds_max(line, number))
      return ++figures.slow, report(line, number, std::to_string(progress_->seconds) + " s");
    run_child(line, number, number + 1);
    figures.bytes_most = std::max(figures.bytes_most, progress_->bytes_most);
    if (progress_->bytes_most > bytes_max)
      ++figures.large, report(line, number, std::to_string(progress_->bytes_most >> 20) + " MiB");
  }

  double seconds_max(std::size_t line, std::size_t number) const {
    return slower * 10 * std::max(1.0, static_cast<double>(mutant(line, number).size()) * 1e-6);
  }

  int run_child(std::size_t line, std::size_t begin, std::size_t end) {
    *progress_ = {};
    progress_->next = begin;
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) run_mutants(line, begin, end);
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }

  /// Runs mutants up to one that breaks a bound. Its status is then 3.
  [[noreturn]] void run_mutants(std::size_t line, std::size_t begin, std::size_t end) {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    const int nothing = open("/dev/null", O_RDWR);
    const int errors = open((findings_ + "/stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (std::size_t number = begin; number < end; ++number) {
      progress_->next = number;
      const std::string bytes = mutant(line, number);
      std::ofstream(path_, std::ios::binary) << bytes;
      ftruncate(errors, 0) == 0 ? void() : void();
      limit_time(seconds_max(line, number));
      forget_peak();
      const double before = processor_seconds();
      const int status = run_tool(plan_[line].words);
      const double seconds = processor_seconds() - before;
      const std::uint64_t peak = peak_bytes();
      progress_->status = status;
      progress_->seconds = seconds;
      progress_->bytes = peak;
      progress_->rejected += status == 1 ? 1 : 0;
      progress_->seconds_most = std::max(progress_->seconds_most, seconds);
      if (peak > bytes_max && end - begin > 1) _exit(3);
      progress_->bytes_most = std::max(progress_->bytes_most, peak);
      if (!is_right(status) || seconds > seconds_max(line, number) || peak > bytes_max) _exit(3);
    }
    _exit(0);
  }

  static void limit_time(double seconds) {
    const auto limit = static_cast<rlim_t>(processor_seconds() + 2 * seconds + 1);
    const rlimit both{limit, RLIM_INFINITY};
    setrlimit(RLIMIT_CPU, &both);
    alarm(600);
  }

  int run_tool(std::vector<std::string> words) const {
    for (std::string& word : words)
      if (const auto at = word.find('@'); at != word.npos) word.replace(at, 1, path_);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return tools.at(words[0])(static_cast<int>(words.size()), arguments.data());
  }

  void report(std::size_t line, std::size_t number, const std::string& what) {
    const std::string name = findings_ + "/" + std::to_string(++found_);
    std::ofstream(name, std::ios::binary) << mutant(line, number);
    std::string command;
    for (const std::string& word : plan_[line].words) command += " " + word;
    std::printf("%s: %s:%s (of %s)\n", name.c_str(), what.c_str(), command.c_str(), plan_[line].file.c_str());
    if (what == "sanitizer" || what.starts_with("signal")) {
      const std::string said = read_whole(findings_ + "/stderr");
      std::ofstream(name + ".stderr") << said;
    }
    std::fflush(stdout);
  }

  /// Prints once a minute, to standard error, how far the run is.
  void print_progress(std::size_t mutants) {
    const std::time_t now = std::time(nullptr);
    if (now - last_progress_ < 60) return;
    last_progress_ = now;
    std::size_t done = 0;
    for (const auto& [kind, figures] : figures_) done += figures.mutants;
    std::fprintf(stderr, "%zu of %zu mutants, %zu findings, after %lld s\n", done, mutants, found_,
                 static_cast<long long>(now - begin_));
  }

  bool print_figures() const {
    Figures all;
    const auto print = [](const std::string& kind, const Figures& each) {
      std::printf("%-12s %9zu %9zu %8zu %6zu %6zu %6zu %9.1f %9.2f\n", kind.c_str(), each.mutants, each.rejected,
                  each.crashes, each.large, each.slow, each.wrong, static_cast<double>(each.bytes_most) / 1048576,
                  each.seconds_most);
    };
    std::printf("%-12s %9s %9s %8s %6s %6s %6s %9s %9s\n", "kind", "mutants", "status 1", "crashes", "large", "slow",
                "status", "MiB most", "s most");
    for (const auto& [kind, each] : figures_) {
      print(kind, each);
      all.mutants += each.mutants;
      all.rejected += each.rejected;
      all.crashes += each.crashes;
      all.large += each.large;
      all.slow += each.slow;
      all.wrong += each.wrong;
      all.bytes_most = std::max(all.bytes_most, each.bytes_most);
      all.seconds_most = std::max(all.seconds_most, each.seconds_most);
    }
    print("all", all);
    return all.crashes + all.large + all.slow + all.wrong == 0;
  }

  std::vector<Line> plan_;
  std::map<std::string, std::vector<std::string>> bytes_of_kind_;
  std::string findings_, path_;
  unsigned seed_;
  Progress* progress_;
  std::map<std::string, Figures> figures_;
  std::size_t found_ = 0;
  std::time_t begin_ = std::time(nullptr), last_progress_ = begin_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("Usage: mutants PLAN FINDINGS MUTANTS [SEED]\n", stderr);
    return 2;
  }
  const auto seed = static_cast<unsigned>(argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 1);
  return Runner(read_plan(argv[1]), argv[2], seed).run(std::strtoul(argv[3], nullptr, 10)) ? 0 : 1;
}
