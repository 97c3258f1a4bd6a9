// Reads the status file line by line, and waits for collectors: for their last lines in that file, and for the locks of
// their traces. The kernel reports a new line by inotify. But a collector that is killed writes none, and some file
// systems have no inotify. So the locks are looked at all the same, after pauses that grow.

#include "toolkit/launch/trace_status.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "cmt/reader.h"
#include "libcmt/trace/files.h"
#include "toolkit/files/temporary_folder.h"
#include "toolkit/launch/left_behind.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"

namespace cmt::launch {
namespace {

namespace fs = std::filesystem;

constexpr int patience_ms = 2000;  // for processes that the command has left running
constexpr int step_ms_min = 1, step_ms_max = 10;
constexpr std::string_view pid_key = "pid=", path_key = " path=", begun_key = " begun=1 ", renamed_key = " renamed=1 ",
                           snapshot_key = " snapshot=1 ", collector_key = " collector=", start_key = " start_ns=",
                           begin_key = " begin_ns=", waiting_key = " waiting=", refused_key = " refused=1 ",
                           error_key = " errno=", unrecorded_key = " not_recorded=",
                           exec_failed_key = " exec_failed=1 ";

// Bounds of what is believed: the file may be written by the command itself.
constexpr std::size_t line_bytes_max = 16 << 10, traces_max = 1 << 20, programs_max = 1000, name_bytes_max = 256;
constexpr std::uint64_t file_bytes_max = 256 << 20;
constexpr std::uint64_t figure_max = std::uint64_t{1} << 62;
constexpr int pid_max = 1 << 22;

/// The relative path, if the file is in the current folder.
std::string relative_to_here(const std::string& path) {
  std::error_code error;
  const std::string here = fs::current_path(error).string() + "/";
  return !error && path.starts_with(here) ? path.substr(here.size()) : path;
}

/// Leaves the number as it is if the line has none, or an absurd one.
template <class Number>
void parse_number(std::string_view line, std::string_view key, Number& number) {
  const auto at = line.find(key);
  Number stated{};
  if (at == line.npos) return;
  const auto [end, error] = std::from_chars(line.data() + at + key.size(), line.data() + line.size(), stated);
  if (error == std::errc() && stated >= 0 && static_cast<std::uint64_t>(stated) <= figure_max) number = stated;
}

/// Text for a terminal.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, name_bytes_max));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return result;
}

std::string word_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == line.npos) return {};
  line.remove_prefix(at + key.size());
  return shown(line.substr(0, line.find(' ')));
}

/// 0: the line does not begin with a process.
int process_of(std::string_view line) {
  int process = 0;
  if (line.starts_with(pid_key)) parse_number(line, pid_key, process);
  return process <= pid_max ? process : 0;
}

/// "pid=7 start_ns=1 snapshot=1 kept_events=5 kept_ns=6 dropped_events=7 kept_bytes=8 path=/tmp/app.kept.1.cmt", or
/// with "failed=28" instead of the figures.
FlightFile parse_kept_file(std::string_view fields, const std::string& path) {
  FlightFile file{.path = path};
  parse_number(fields, " kept_events=", file.events);
  parse_number(fields, " kept_ns=", file.ns);
  parse_number(fields, " kept_bytes=", file.bytes);
  parse_number(fields, " failed=", file.error);
  return file;
}

void parse_figures(std::string_view fields, BegunTrace& trace) {
  trace.ended = true;
  parse_number(fields, " events=", trace.events);
  parse_number(fields, " threads=", trace.threads);
  parse_number(fields, " bytes=", trace.bytes);
  parse_number(fields, " lost=", trace.lost);
  parse_number(fields, " time_ns=", trace.lived_ns);
  parse_number(fields, " failed=", trace.error);
  parse_number(fields, " cpu_ns=", trace.collector_cpu_ns);
  parse_number(fields, " unseen=", trace.unseen);
  parse_number(fields, " pool_unseen=", trace.pool_unseen);
  parse_number(fields, " pool_replaced=", trace.pool_replaced);
  parse_number(fields, " pools_refused=", trace.pools_refused);
  parse_number(fields, " pauses=", trace.pauses);
  parse_number(fields, " children_unrecorded=", trace.children_unrecorded);
  parse_number(fields, " programs_unrecorded=", trace.programs_unrecorded);
  parse_number(fields, " time_step_ns=", trace.time_step_ns);
  parse_number(fields, " recorded_ns=", trace.recorded_ns);
  parse_number(fields, " bypasses=", trace.bypasses);
  parse_number(fields, " stacks_unknown=", trace.stacks_unknown);
  parse_number(fields, " stacks_cut=", trace.stacks_cut);
  parse_number(fields, " lines_named=", trace.lines_named);
  parse_number(fields, " lines_unplaced=", trace.lines_unplaced);
  parse_number(fields, " lines_nameless=", trace.lines_nameless);
  parse_number(fields, " profile_failed=", trace.profile_error);
  parse_number(fields, " kept_ns=", trace.kept_ns);
  parse_number(fields, " dropped_events=", trace.dropped_events);
  trace.stopped = word_after(fields, " stopped=");
  trace.bypass = word_after(fields, " bypass=");
}

/// Reads the lines of a status file, one after the other.
class StatusLines {
 public:
  explicit StatusLines(const TracePaths& paths) : paths_(paths) {}

  void add(std::string_view line) {
    const std::size_t path_at = line.find(path_key);
    const int process = process_of(line);
    if (process == 0 || path_at == line.npos) return;
    const std::string_view fields = line.substr(0, path_at + 1), path = line.substr(path_at + path_key.size());
    if (fields.find(refused_key) != fields.npos)
      add_refusal(process, fields, path);
    else if (fields.find(exec_failed_key) != fields.npos)
      take_back(process);
    else if (fields.find(unrecorded_key) != fields.npos)
      add_unrecorded(process, word_after(fields, unrecorded_key), path);
    else
      add_to_trace(process, fields, path);
  }

  TraceStatusFile::Content finish() {
    for (auto& [key, count] : unrecorded_) {
      if (count != 0) content_.unrecorded.push_back({key.first, key.second, count});
    }
    std::stable_sort(content_.unrecorded.begin(), content_.unrecorded.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    return std::move(content_);
  }

 private:
  using Key = std::pair<std::string, std::string>;

  void count(const std::string& program, const std::string& reason, int process) {
    const Key key{unrecorded_.size() < programs_max ? program : "others", reason};
    ++unrecorded_[key];
    if (last_.size() < traces_max) last_[process] = key;
  }

  void add_unrecorded(int process, const std::string& keyword, std::string_view program) {
    if (const std::string_view reason = reason_of_obstacle(keyword); !reason.empty())
      count(shown(relative_to_here(std::string(program))), std::string(reason), process);
  }

  /// The kernel has refused to execute the program, whatever it is.
  void take_back(int process) {
    if (const auto last = last_.find(process); last != last_.end()) {
      --unrecorded_[last->second];
      last_.erase(last);
    }
  }

  /// A trace that the process had begun already is not there: its collector could not be started.
  void add_refusal(int process, std::string_view fields, std::string_view program) {
    int error = 0;
    parse_number(fields, error_key, error);
    ++content_.refused;
    count(program.empty() ? "process " + std::to_string(process) : shown(program),
          error > 0 && error < 4096 ? std::generic_category().message(error) : "an error that libcmttrace reported",
          process);
    BegunTrace stated{.process = process, .path = {}};
    parse_number(fields, start_key, stated.start_ns);
    if (stated.start_ns != 0)
      std::erase_if(content_.begun, [&](const BegunTrace& begun) {
        return begun.process == process && begun.start_ns == stated.start_ns;
      });
  }

  void add_to_trace(int process, std::string_view fields, std::string_view stated_path) {
    const bool is_kept_file = fields.find(snapshot_key) != fields.npos,
               is_begin = fields.find(begun_key) != fields.npos, is_renamed = fields.find(renamed_key) != fields.npos;
    const auto found = paths_.find(stated_path, process), kept = paths_.find_kept(stated_path, process);
    BegunTrace stated{.process = process, .path = found ? relative_to_here(*found) : ""};
    parse_number(fields, start_key, stated.start_ns);
    stated.begin_ns = stated.start_ns;
    if (is_begin && !found) ++content_.elsewhere;
    if (is_begin && found && content_.begun.size() < traces_max) content_.begun.push_back(stated);
    if (is_begin) return;
    const auto trace = std::find_if(content_.begun.rbegin(), content_.begun.rend(), [&](const BegunTrace& begun) {
      return begun.process == process && (is_renamed || begun.start_ns == stated.start_ns);
    });
    if (trace == content_.begun.rend()) return;
    if (is_renamed) {
      if (found) trace->path = stated.path;
      return;
    }
    if (fields.find(begin_key) != fields.npos) {
      parse_number(fields, begin_key, trace->begin_ns);
      return;
    }
    parse_number(fields, " encoded=", trace->encoded);
    parse_number(fields, waiting_key, trace->waiting);
    if (fields.find(waiting_key) != fields.npos) return;
    if (is_kept_file) {
      if ((found || kept) && trace->kept_files.size() < traces_max)
        trace->kept_files.push_back(parse_kept_file(fields, relative_to_here(found ? *found : *kept)));
    } else if (fields.find(collector_key) != fields.npos) {
      parse_number(fields, collector_key, trace->collector);
      if (trace->collector > pid_max) trace->collector = 0;
      trace->watched = word_after(fields, " watches=");
    } else {
      parse_figures(fields, *trace);
    }
  }

  const TracePaths& paths_;
  TraceStatusFile::Content content_;
  std::map<Key, std::uint64_t> unrecorded_;  // by program and reason
  std::map<int, Key> last_;                  // by process
};

std::uint64_t count_events(Reader& reader, std::uint64_t& threads) {
  std::set<std::uint64_t> seen;
  std::uint64_t events = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    events += batch.size();
    for (const Event& event : batch) {
      if (seen.empty() || event.thread != *seen.rbegin()) seen.insert(event.thread);
    }
  }
  threads = seen.size();
  return events;
}

void add_file(RecordedFile file, const BegunTrace& trace, RecordedTraces& recorded) {
  file.process = trace.process;
  file.start_ns = trace.start_ns;
  file.begin_ns = trace.begin_ns;
  file.lived_ns = trace.lived_ns;
  recorded.bytes += file.bytes;
  recorded.events += file.events;
  recorded.threads += file.threads;
  recorded.repairs += file.repairs;
  recorded.unfinished += file.is_finished ? 0 : 1;
  recorded.files.push_back(std::move(file));
}

/// By the collector's own figures.
void add_as_reported(const BegunTrace& trace, RecordedTraces& recorded) {
  RecordedFile file{.path = trace.path, .bytes = trace.bytes};
  file.events = trace.events;
  file.threads = trace.threads;
  file.repairs = trace.lost;
  file.is_finished = trace.ended;
  add_file(std::move(file), trace, recorded);
}

/// Whether there is no such file: the program, or somebody else, has renamed or removed the trace.
bool is_missing(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) != 0 && errno == ENOENT;
}

/// Throws FormatError and std::runtime_error.
void add_trace(const BegunTrace& trace, RecordedTraces& recorded) {
  const std::string& path = trace.path;
  if (owner_of_trace(path) == TraceOwner::other) {  // its file is not opened
    ++recorded.of_others;
    return add_as_reported(trace, recorded);
  }
  const int fd = open_own_trace(path);
  struct stat status {};
  fstat(fd, &status);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes == 0) {  // the collector has not written anything yet
    close(fd);
    return add_file({.path = path, .bytes = 0, .is_finished = false}, trace, recorded);
  }
  Reader reader(fd, path, {.addresses = false, .times = false, .usable = false});
  const auto start = reader.header().find("start_monotonic_ns");
  if (start && trace.begin_ns != 0 && *start != std::to_string(trace.begin_ns))
    throw std::runtime_error(path + ": another recording has replaced the trace");
  RecordedFile file{.path = path, .bytes = bytes};
  file.program = reader.header().find("program").value_or("");
  file.command = reader.header().find("command").value_or("");
  file.is_sampled = reader.header().sampled() != 0;
  reader.accept_samples();
  const auto totals = reader.totals();
  if (totals) {
    file.totals = *totals;
    file.threads = totals->threads;
    file.pool_blocks = totals->by_kind[static_cast<std::size_t>(Kind::pool_malloc)];
  }
  file.events = totals ? totals->events : count_events(reader, file.threads);
  const Repairs repairs = totals ? totals->repairs : reader.repairs();
  file.repairs = repairs.total() - repairs[Repair::unmatched_free];
  file.breaks_off = totals ? totals->truncated : reader.truncated();
  file.is_finished = !file.breaks_off || trace.stopped.starts_with("max-");
  add_file(std::move(file), trace, recorded);
}

/// The peak of live bytes; for a text, whose peak is not counted, the bytes of the file.
std::uint64_t weight(const RecordedFile& file) { return file.totals ? file.totals->peak_live_bytes : file.bytes; }

RecordedTraces add_traces(const std::vector<BegunTrace>& traces, bool has_files,
                          const std::function<void(const std::string&)>& complain) {
  RecordedTraces recorded;
  for (const BegunTrace& trace : traces) {
    try {
      if (!has_files) {
        add_as_reported(trace, recorded);
      } else if (!trace.ended && !is_running(trace.process) && is_written(trace.path)) {
        recorded.encoding.push_back(trace.path);
      } else {
        add_trace(trace, recorded);
      }
    } catch (const std::exception& error) {
      complain(is_missing(trace.path) ? trace.path + " was renamed or removed while it was recorded" : error.what());
      ++recorded.unreadable;
      if (!trace.ended) continue;
      add_as_reported(trace, recorded);
      recorded.files.back().is_readable = false;
    }
  }
  std::stable_sort(recorded.files.begin(), recorded.files.end(), [](const RecordedFile& a, const RecordedFile& b) {
    return a.is_readable != b.is_readable ? a.is_readable : weight(a) > weight(b);
  });
  return recorded;
}

/// "perl (Too many open files)", "./a.out (linked statically, 3 times)".
std::string name_unrecorded(const UnrecordedProgram& program) {
  return program.program + " (" + program.reason +
         (program.count > 1 ? ", " + output::with_commas(program.count) + " times" : "") + ")";
}

/// The line about events that --keep has left out; empty: there are none.
std::string kept_text(const std::vector<BegunTrace>& traces) {
  std::uint64_t dropped = 0, kept_ns = 0, cut_traces = 0;
  for (const BegunTrace& trace : traces) {
    if (trace.dropped_events == 0) continue;
    dropped += trace.dropped_events;
    kept_ns = cut_traces++ == 0 ? trace.kept_ns : std::min(kept_ns, trace.kept_ns);
  }
  if (dropped == 0) return {};
  return "the last " + output::time_text(static_cast<double>(kept_ns)) + (cut_traces > 1 ? " or more" : "") +
         " are kept, and not the " + output::counted(dropped, "event") + " before";
}

}  // namespace

TraceStatusFile::TraceStatusFile(const std::string& output, bool has_traces) : paths_(output), has_traces_(has_traces) {
  if (const char* const given = std::getenv("CMTTRACE_STATUS"); given != nullptr && *given != 0) {
    is_of_launcher_ = *given == '-';
    path_ = fs::absolute(given + is_of_launcher_);
    std::error_code error;
    const auto size = fs::file_size(path_, error);
    if (!error) begin_ = size;
    if (is_of_launcher_ ? !error && access(path_.c_str(), R_OK) == 0 : true) return;
  }
  begin_ = 0;
  make_file();
  is_ours_ = is_of_launcher_ = true;
}

/// Only root's command can change its user.
void TraceStatusFile::make_file() {
  const bool is_for_others = geteuid() == 0;
  const std::string folder = files::make_temporary_folder(std::string(status_folder_begin));
  chmod(folder.c_str(), is_for_others ? 0711 : 0700);  // whatever the umask is
  std::array<unsigned char, status_name_digits / 2> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  path_ = folder + "/";
  for (const unsigned char byte : random) {
    path_ += "0123456789abcdef"[byte >> 4];
    path_ += "0123456789abcdef"[byte & 15];
  }
  own_file_ = process::Fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (own_file_.get() < 0) throw std::system_error(errno, std::generic_category(), path_);
  flock(own_file_.get(), LOCK_EX);
  fchmod(own_file_.get(), is_for_others ? 0622 : 0600);
}

TraceStatusFile::~TraceStatusFile() {
  if (!is_ours_) return;
  unlink(path_.c_str());
  rmdir(fs::path(path_).parent_path().c_str());
}

std::string TraceStatusFile::setting() const { return (is_of_launcher_ ? "-" : "") + path_; }

std::string TraceStatusFile::folder() const { return is_ours_ ? fs::path(path_).parent_path().string() : ""; }

TraceStatusFile::Content TraceStatusFile::read() const {
  StatusLines lines(paths_);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin_));
  std::vector<char> buffer(1 << 16);  // a stack may be smaller
  std::string line;
  bool is_too_long = false;
  for (std::uint64_t read = 0; read < file_bytes_max; read += buffer.size()) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    std::string_view rest(buffer.data(), static_cast<std::size_t>(file.gcount()));
    if (rest.empty()) break;
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      line += rest.substr(0, end);
      if (!is_too_long && line.size() <= line_bytes_max) lines.add(line);
      line.clear();
      is_too_long = false;
    }
    is_too_long = is_too_long || line.size() + rest.size() > line_bytes_max;
    if (is_too_long)
      line.clear();
    else
      line += rest;
  }
  return lines.finish();
}

process::Fd TraceStatusFile::watch() const {
  process::Fd changes(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (changes.get() >= 0) inotify_add_watch(changes.get(), path_.c_str(), IN_MODIFY);
  return changes;
}

bool is_running(int process) { return process > 0 && (kill(process, 0) == 0 || errno == EPERM); }

/// Takes what the status file says at last, and counts the traces that will never be whole. A collector appends its
/// last line before it releases the trace's lock. So the lines are read again after the locks were seen to be free.
static void add_broken(const TraceStatusFile& traces, const std::vector<BegunTrace>& all, RecordedTraces& recorded) {
  std::set<std::string> left;
  for (const BegunTrace& trace : all) {
    if (!trace.ended && !is_written(trace.path) && !is_running(trace.process)) left.insert(trace.path);
  }
  TraceStatusFile::Content last = traces.read();
  recorded.traces = std::move(last.begun);
  recorded.refused = last.refused;
  recorded.unrecorded = std::move(last.unrecorded);
  recorded.elsewhere = last.elsewhere;
  for (const BegunTrace& trace : recorded.traces) {
    const bool is_broken = trace.error != 0 || (!trace.ended && left.contains(trace.path));
    recorded.broken += is_broken ? 1 : 0;
    recorded.faulty += !is_broken && trace.stopped == "fault" ? 1 : 0;
    if (trace.error != 0 && recorded.error == 0) recorded.error = trace.error;
  }
}

/// Reads what inotify has to report. Returns whether there was anything.
static bool take_changes(const process::Fd& changes) {
  alignas(inotify_event) std::array<char, 4096> events;
  bool is_any = false;
  while (changes.get() >= 0 && ::read(changes.get(), events.data(), events.size()) > 0) is_any = true;
  return is_any;
}

/// Whether a process of the command has no line in the status file yet, or none since it has called exec.
static bool has_unseen(const TraceStatusFile& traces, const std::vector<BegunTrace>& all) {
  const std::vector<int> left = left_behind("CMTTRACE_STATUS=" + traces.setting());
  return std::any_of(left.begin(), left.end(), [&](int pid) {
    return std::none_of(all.begin(), all.end(), [pid](const BegunTrace& trace) {
      return trace.process == pid && (!trace.ended || !trace.stopped.empty());
    });
  });
}

RecordedTraces wait_for_traces(const TraceStatusFile& traces, const std::function<void(const std::string&)>& complain,
                               const Pause& pause) {
  const process::Fd changes = traces.watch();
  int step_ms = step_ms_min;
  for (int waited_ms = 0;; waited_ms += step_ms) {
    step_ms = take_changes(changes) ? step_ms_min : std::min(step_ms * 2, step_ms_max);
    const std::vector<BegunTrace> all = traces.begun();
    const bool is_awaited = std::any_of(all.begin(), all.end(), [&](const BegunTrace& trace) {
      if (trace.ended) return false;
      return waited_ms < patience_ms ? !traces.has_traces() || is_written(trace.path) || is_missing(trace.path)
                                     : !is_running(trace.process) && is_written(trace.path);
    });
    const bool is_left = !is_awaited && waited_ms < patience_ms && has_unseen(traces, all);
    if ((is_awaited || is_left) && !pause(changes.get(), step_ms)) continue;
    RecordedTraces recorded = add_traces(all, traces.has_traces(), complain);
    add_broken(traces, all, recorded);
    return recorded;
  }
}

void leave_out(RecordedTraces& recorded, const std::function<bool(const RecordedFile&)>& is_left_out) {
  std::set<std::pair<int, std::uint64_t>> left;
  std::vector<RecordedFile> kept;
  for (RecordedFile& file : recorded.files) {
    if (!is_left_out(file)) {
      kept.push_back(std::move(file));
      continue;
    }
    recorded.bytes -= file.bytes;
    recorded.events -= file.events;
    recorded.threads -= file.threads;
    recorded.repairs -= file.repairs;
    recorded.unfinished -= file.is_finished ? 0 : 1;
    left.emplace(file.process, file.start_ns);
    recorded.left_out.push_back(std::move(file));
  }
  recorded.files = std::move(kept);
  std::erase_if(recorded.traces, [&](const BegunTrace& trace) {
    return left.contains({trace.process, trace.start_ns});
  });
}

bool has_failed(const RecordedTraces& recorded) {
  return (recorded.files.empty() && recorded.encoding.empty()) || recorded.unreadable != 0 || recorded.broken != 0 ||
         recorded.faulty != 0 || recorded.refused != 0 ||
         std::any_of(recorded.traces.begin(), recorded.traces.end(), [](const BegunTrace& trace) {
           return trace.profile_error != 0 || trace.children_unrecorded != 0;
         });
}

std::string list_unrecorded(const RecordedTraces& recorded) {
  constexpr std::size_t named_max = 8;
  const std::vector<UnrecordedProgram>& programs = recorded.unrecorded;
  std::uint64_t processes = 0;
  for (const UnrecordedProgram& program : programs) processes += program.count;
  if (processes == 0) return {};
  const std::size_t named = std::min(programs.size(), named_max);
  std::string text = output::counted(processes, "program") + " not recorded: ";
  for (std::size_t i = 0; i < named; ++i)
    text += (i == 0 ? "" : i + 1 < programs.size() ? ", " : " and ") + name_unrecorded(programs[i]);
  if (named < programs.size()) text += " and " + output::counted(programs.size() - named, "other");
  return text;
}

std::vector<std::string> list_losses(const RecordedTraces& recorded) {
  std::vector<std::string> losses;
  if (recorded.repairs != 0) losses.push_back(output::counted(recorded.repairs, "event") + " lost or in doubt");
  const auto sum = [&](std::uint64_t BegunTrace::*figure) {
    return std::accumulate(recorded.traces.begin(), recorded.traces.end(), std::uint64_t{0},
                           [&](std::uint64_t before, const BegunTrace& trace) { return before + trace.*figure; });
  };
  const auto add = [&](std::uint64_t BegunTrace::*figure, const std::string& noun, const std::string& rest) {
    if (const std::uint64_t number = sum(figure); number != 0) losses.push_back(output::counted(number, noun) + rest);
  };
  std::uint64_t bypasses = 0;
  std::string bypass;
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> stopped;  // by reason: traces, and the last one's end
  for (const BegunTrace& trace : recorded.traces) {
    bypasses += trace.bypasses;
    if (bypass.empty()) bypass = trace.bypass;
    if (!trace.stopped.empty()) stopped[trace.stopped] = {stopped[trace.stopped].first + 1, trace.recorded_ns};
  }
  if (std::string kept = kept_text(recorded.traces); !kept.empty()) losses.push_back(std::move(kept));
  add(&BegunTrace::unseen, "block", " freed whose allocation was not seen");
  add(&BegunTrace::pool_unseen, "end", " of unknown blocks of pools, which are left out");
  add(&BegunTrace::pool_replaced, "block", " of pools made at the address of a live one");
  add(&BegunTrace::pools_refused, "pool", " not recorded, as there are too many");
  add(&BegunTrace::pauses, "pause", " in which no calls were recorded");
  add(&BegunTrace::children_unrecorded, "forked process",
      " not recorded, nor children of these: standard error has the reason");
  add(&BegunTrace::programs_unrecorded, "program",
      " not recorded: executed in another root folder, where libcmttrace.so is not");
  if (bypasses != 0) {
    losses.push_back("calls by " + bypass +
                     (bypasses > 1 ? " and " + output::counted(bypasses - 1, "other module") : "") +
                     " not seen (RTLD_DEEPBIND or dlmopen)");
  }
  if (const std::uint64_t unknown = sum(&BegunTrace::stacks_unknown); unknown != 0)
    losses.push_back("the call stacks of " + output::counted(unknown, "event") + " not known");
  if (const std::uint64_t cut = sum(&BegunTrace::stacks_cut); cut != 0)
    losses.push_back("the call stacks of " + output::counted(cut, "event") + " cut, as there are too many");
  if (const std::uint64_t unplaced = sum(&BegunTrace::lines_unplaced); unplaced != 0)
    losses.push_back("the lines of Python in " + output::counted(unplaced, "call stack") + " not known");
  add(&BegunTrace::lines_nameless, "line", " of Python not named, as there are too many");
  for (const auto& [reason, end] : stopped) {
    const std::string by = reason == "fault" ? "an error that libcmttrace reported" : "--" + reason;
    losses.push_back(end.first == 1
                         ? "stopped by " + by + " in the first " + output::time_text(static_cast<double>(end.second))
                         : output::counted(end.first, "trace") + " stopped by " + by);
  }
  if (recorded.broken != 0) {
    losses.push_back(output::counted(recorded.broken, "trace") + " could not be written to the end" +
                     (recorded.error != 0 ? ": " + std::generic_category().message(recorded.error) : ""));
  }
  if (recorded.of_others != 0) {
    losses.push_back(output::counted(recorded.of_others, "trace") +
                     " of another user not read, and counted as its collector reports");
  }
  if (recorded.unreadable != 0) {
    losses.push_back(output::counted(recorded.unreadable, "trace") +
                     " not readable, and counted as far as its collector reports");
  }
  if (recorded.elsewhere != 0)
    losses.push_back(output::counted(recorded.elsewhere, "trace") + " with another name not looked at");
  if (const std::string programs = list_unrecorded(recorded); !programs.empty()) losses.push_back(programs);
  return losses;
}

}  // namespace cmt::launch
