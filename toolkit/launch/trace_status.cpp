// Reads the status file line by line, and waits for collectors by the locks of their files.

#include "toolkit/launch/trace_status.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "cmt/reader.h"
#include "libcmt/trace/files.h"
#include "toolkit/output/numbers.h"

namespace cmt::launch {
namespace {

namespace fs = std::filesystem;

constexpr int patience_ms = 2000;  // for processes that the command has left running
constexpr int step_ms = 10;
constexpr std::string_view pid_key = "pid=", path_key = " path=", begun_key = " begun=1 ", renamed_key = " renamed=1 ",
                           snapshot_key = " snapshot=1 ", collector_key = " collector=", start_key = " start_ns=",
                           waiting_key = " waiting=", refused_ending = " refused=1 path=";

/// The relative path, if the file is in the current folder.
std::string relative_to_here(const std::string& path) {
  std::error_code error;
  const std::string here = fs::current_path(error).string() + "/";
  return !error && path.starts_with(here) ? path.substr(here.size()) : path;
}

void parse_number(std::string_view line, std::string_view key, auto& number) {
  if (const auto at = line.find(key); at != line.npos) {
    std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number);
  }
}

std::string word_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == line.npos) return {};
  line.remove_prefix(at + key.size());
  return std::string(line.substr(0, line.find(' ')));
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

/// Reads one line: "pid=7 start_ns=1 begun=1 path=/tmp/app.cmt". When the process calls exec, "pid=7 start_ns=2
/// renamed=1 path=/tmp/app.7.1.cmt" follows. While the collector encodes what the process has left, lines say "pid=7
/// start_ns=1 encoded=5 waiting=6 path=/tmp/app.cmt". A collector that keeps the last events only says "pid=7
/// start_ns=1 collector=8 path=/tmp/app.cmt" at its start. The last line of a trace has other fields before the path;
/// its path may be that before it was renamed.
void parse_status_line(std::string_view line, std::vector<BegunTrace>& traces) {
  const std::size_t path_at = line.find(path_key);
  if (!line.starts_with(pid_key) || path_at == line.npos) return;
  const std::string path = relative_to_here(std::string(line.substr(path_at + path_key.size())));
  const std::string_view fields = line.substr(0, path_at + 1);
  BegunTrace stated{.process = std::atoi(line.data() + pid_key.size()), .path = path};
  parse_number(fields, start_key, stated.start_ns);
  if (fields.find(begun_key) != line.npos) return traces.push_back(stated);
  const bool is_renamed = fields.find(renamed_key) != line.npos;
  const auto trace = std::find_if(traces.rbegin(), traces.rend(), [&](const BegunTrace& begun) {
    return begun.process == stated.process && (is_renamed || begun.start_ns == stated.start_ns);
  });
  if (trace == traces.rend()) return;
  if (is_renamed) {
    trace->path = path;
    return;
  }
  parse_number(fields, " encoded=", trace->encoded);
  parse_number(fields, waiting_key, trace->waiting);
  if (fields.find(waiting_key) != fields.npos) return;
  if (fields.find(snapshot_key) != fields.npos) return trace->kept_files.push_back(parse_kept_file(fields, path));
  if (fields.find(collector_key) != fields.npos) return parse_number(fields, collector_key, trace->collector);
  trace->ended = true;
  parse_number(fields, " failed=", trace->error);
  parse_number(fields, " cpu_ns=", trace->collector_cpu_ns);
  parse_number(fields, " unseen=", trace->unseen);
  parse_number(fields, " time_step_ns=", trace->time_step_ns);
  parse_number(fields, " recorded_ns=", trace->recorded_ns);
  parse_number(fields, " bypasses=", trace->bypasses);
  parse_number(fields, " stacks_unknown=", trace->stacks_unknown);
  parse_number(fields, " stacks_cut=", trace->stacks_cut);
  parse_number(fields, " kept_ns=", trace->kept_ns);
  parse_number(fields, " dropped_events=", trace->dropped_events);
  trace->stopped = word_after(fields, " stopped=");
  trace->bypass = word_after(fields, " bypass=");
}

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

/// Throws FormatError and std::system_error.
void add_trace(const std::string& path, RecordedTraces& recorded) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  if (error) throw std::system_error(error.value(), std::generic_category(), path);
  if (bytes == 0) {  // the collector has not written anything yet
    recorded.files.push_back({path});
    ++recorded.unfinished;
    return;
  }
  Reader reader(path, {.addresses = false, .times = false, .usable = false});
  recorded.files.push_back({path, bytes, std::string(reader.header().find("program").value_or(""))});
  recorded.bytes += bytes;
  const auto totals = reader.totals();
  std::uint64_t threads = totals ? totals->threads : 0;
  recorded.events += totals ? totals->events : count_events(reader, threads);
  recorded.threads += threads;
  const Repairs repairs = totals ? totals->repairs : reader.repairs();
  recorded.repairs += repairs.total() - repairs[Repair::unmatched_free];
  recorded.unfinished += totals ? totals->truncated : reader.truncated();
}

RecordedTraces add_traces(const std::vector<BegunTrace>& traces,
                          const std::function<void(const std::string&)>& complain) {
  RecordedTraces recorded;
  for (const BegunTrace& trace : traces) {
    try {
      if (!trace.ended && !is_running(trace.process) && is_written(trace.path)) {
        recorded.encoding.push_back(trace.path);
      } else {
        add_trace(trace.path, recorded);
      }
    } catch (const std::exception& error) {
      complain(error.what());
      ++recorded.unreadable;
    }
  }
  std::stable_sort(recorded.files.begin(), recorded.files.end(),
                   [](const RecordedFile& a, const RecordedFile& b) { return a.bytes > b.bytes; });
  return recorded;
}

}  // namespace

TraceStatusFile::TraceStatusFile() {
  if (const char* const given = std::getenv("CMTTRACE_STATUS"); given != nullptr && *given != 0) {
    is_of_launcher_ = *given == '-';
    path_ = fs::absolute(given + is_of_launcher_);
    std::error_code error;
    const auto size = fs::file_size(path_, error);
    if (!error) begin_ = size;
    if (!error || !is_of_launcher_) return;
  }
  path_ = fs::temp_directory_path() / "cmttrace.XXXXXX";
  const int fd = mkstemp(path_.data());
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path_);
  is_ours_ = is_of_launcher_ = true;
  // The command may change its user, and must still be able to append a line.
  fchmod(fd, 0622);
  close(fd);
}

TraceStatusFile::~TraceStatusFile() {
  if (is_ours_) unlink(path_.c_str());
}

std::string TraceStatusFile::setting() const { return (is_of_launcher_ ? "-" : "") + path_; }

TraceStatusFile::Content TraceStatusFile::read() const {
  Content content;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin_));
  for (std::string line; std::getline(file, line);) {
    parse_status_line(line, content.begun);
    content.refused += line.starts_with(pid_key) && line.ends_with(refused_ending) ? 1 : 0;
  }
  return content;
}

bool is_written(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = recorder_at_work;
  lock.l_len = 1;
  const bool taken = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(fd);
  return taken;
}

bool is_running(int process) { return kill(process, 0) == 0 || errno == EPERM; }

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
  for (const BegunTrace& trace : recorded.traces) {
    const bool is_broken = trace.error != 0 || (!trace.ended && left.contains(trace.path));
    recorded.broken += is_broken ? 1 : 0;
    recorded.faulty += !is_broken && trace.stopped == "fault" ? 1 : 0;
    if (trace.error != 0 && recorded.error == 0) recorded.error = trace.error;
  }
}

RecordedTraces wait_for_traces(const TraceStatusFile& traces, const std::function<void(const std::string&)>& complain,
                               const Pause& pause) {
  for (int waited_ms = 0;; waited_ms += step_ms) {
    const std::vector<BegunTrace> all = traces.begun();
    const bool is_awaited = std::any_of(all.begin(), all.end(), [&](const BegunTrace& trace) {
      return !trace.ended && (waited_ms < patience_ms || !is_running(trace.process)) && is_written(trace.path);
    });
    if (is_awaited && !pause(step_ms)) continue;
    RecordedTraces recorded = add_traces(all, complain);
    add_broken(traces, all, recorded);
    return recorded;
  }
}

bool has_failed(const RecordedTraces& recorded) {
  return (recorded.files.empty() && recorded.encoding.empty()) || recorded.unreadable != 0 || recorded.broken != 0 ||
         recorded.faulty != 0 || recorded.refused != 0;
}

std::vector<std::string> list_losses(const RecordedTraces& recorded) {
  std::vector<std::string> losses;
  if (recorded.repairs != 0) losses.push_back(output::counted(recorded.repairs, "event") + " lost or in doubt");
  std::uint64_t dropped = 0, kept_ns = 0, unseen = 0, bypasses = 0, stacks_unknown = 0, stacks_cut = 0;
  std::string bypass;
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> stopped;  // by reason: traces, and the last one's end
  for (const BegunTrace& trace : recorded.traces) {
    dropped += trace.dropped_events;
    kept_ns = std::max(kept_ns, trace.kept_ns);
    unseen += trace.unseen;
    stacks_unknown += trace.stacks_unknown;
    stacks_cut += trace.stacks_cut;
    bypasses += trace.bypasses;
    if (bypass.empty()) bypass = trace.bypass;
    if (!trace.stopped.empty()) stopped[trace.stopped] = {stopped[trace.stopped].first + 1, trace.recorded_ns};
  }
  if (dropped != 0) {
    losses.push_back("the last " + output::time_text(static_cast<double>(kept_ns)) + " are kept, and not the " +
                     output::counted(dropped, "event") + " before");
  }
  if (unseen != 0) losses.push_back(output::counted(unseen, "block") + " freed whose allocation was not seen");
  if (bypasses != 0) {
    losses.push_back("calls by " + bypass +
                     (bypasses > 1 ? " and " + output::counted(bypasses - 1, "other module") : "") +
                     " not seen (RTLD_DEEPBIND or dlmopen)");
  }
  if (stacks_unknown != 0)
    losses.push_back("the call stacks of " + output::counted(stacks_unknown, "event") + " not known");
  if (stacks_cut != 0)
    losses.push_back("the call stacks of " + output::counted(stacks_cut, "event") + " cut, as there are too many");
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
  if (recorded.refused != 0) losses.push_back(output::counted(recorded.refused, "process") + " not recorded");
  return losses;
}

}  // namespace cmt::launch
