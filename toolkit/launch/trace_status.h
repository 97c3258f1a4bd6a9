/// The traces of a command and its children, as the tracers and collectors report them in a status file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmt/header.h"
#include "toolkit/launch/trace_paths.h"
#include "toolkit/process/proc_file.h"

namespace cmt::launch {

/// A file that a flight recorder has written while the recording went on.
struct FlightFile {
  std::string path;  ///< relative, where it is in the current folder; of the trace, where no file could be written
  std::uint64_t events = 0, ns = 0, bytes = 0;
  int error = 0;  ///< an errno: why it could not be written; 0: it was
};

/// A trace that a recorded process has begun to write.
struct BegunTrace {
  int process = 0;
  std::uint64_t start_ns = 0;  ///< of its recording; a process that calls exec has several
  std::uint64_t begin_ns = 0;  ///< the same by the collector's clock, which may be of another time namespace
  std::string path;            ///< relative, where it is in the current folder
  bool ended = false;          ///< its collector has finished, and has set the fields below
  std::uint64_t events = 0, threads = 0, bytes = 0, lost = 0;
  std::uint64_t lived_ns = 0;  ///< from the begin of the recording to its end
  int error = 0;               ///< an errno: why a part of the trace could not be written; 0: none
  std::int64_t collector_cpu_ns = 0;
  std::uint64_t unseen = 0;        ///< blocks that were freed and whose allocation was not seen; 0 for a forked process
  std::string stopped{};           ///< why the recording ended early: "max-bytes", "fault"; empty: it did not
  std::uint64_t time_step_ns = 0;  ///< times lie up to this before the calls; 0: each call has its own, or none has one
  std::uint64_t recorded_ns = 0;   ///< with `stopped`: after this time, since its begin, there are no events
  std::uint64_t bypasses = 0;      ///< modules whose calls were not seen
  std::string bypass{};            ///< the first of them
  std::uint64_t stacks_unknown = 0;  ///< events whose call stacks were to be recorded, and are not known
  std::uint64_t stacks_cut = 0;      ///< events whose call stacks are cut, since there were too many different ones
  std::uint64_t lines_named = 0;     ///< of interpreters' programs, in call stacks
  std::uint64_t lines_unplaced = 0;  ///< call stacks that have no such lines, since their places were not known
  std::uint64_t lines_nameless = 0;  ///< lines that have no name, since there were too many
  std::uint64_t encoded = 0;         ///< before `ended`: events in the trace, by the collector's last report
  std::uint64_t waiting = 0;         ///< about how many events are not in the trace yet; 0: no report so far
  int collector = 0;                 ///< its process, if it takes SIGUSR1; else 0
  std::vector<FlightFile> kept_files{};
  std::string watched{};  ///< the memory of --keep-at: "group", "machine" or "process"; empty: none
  int profile_error = 0;  ///< an errno: why the last profile could not be written; 0: it was, or there is none
  std::uint64_t kept_ns = 0, dropped_events = 0;  ///< of a recording that has kept its last events only
  std::uint64_t pool_unseen = 0;                  ///< blocks of pools that ended and are not known
  std::uint64_t pool_replaced = 0;                ///< blocks of pools at whose address another one was made
  std::uint64_t pools_refused = 0;                ///< pools that are not recorded, as there are too many
  std::uint64_t pauses = 0;                       ///< how often recording was paused
  std::uint64_t children_unrecorded = 0;  ///< forked children that could not be recorded, and could not say so here
  std::uint64_t programs_unrecorded = 0;  ///< executed in another root folder, where libcmttrace.so is not
};

/// Programs that were started and not recorded, with the same reason.
struct UnrecordedProgram {
  std::string program;  ///< as it was started
  std::string reason;   ///< "linked statically"
  std::uint64_t count = 0;
};

/// The file that CMTTRACE_STATUS names. libcmttrace.so appends a line to it when a process begins a trace, and the
/// collector a line when the trace is whole. A launcher reads it to know the traces of a command and its children.
///
/// A file of ours is for this user alone. But root's command may change its user, and must still be able to append a
/// line. So root's file has a name that cannot be guessed, in a folder that other users cannot list.
///
/// The launcher locks its file by flock(2) as long as it lives. A collector that has appended its last line and finds
/// no lock removes the file and its folder: the launcher was killed.
///
/// Lines are not trusted all the same. They choose among the paths of TracePaths, and their length and number is
/// bounded.
class TraceStatusFile {
 public:
  /// Reads what will be appended to the file that CMTTRACE_STATUS names. Where it is not set, or names the file of a
  /// launcher that has ended, makes a file, which this object deletes. `output`: CMTTRACE_OUT of the command, or
  /// CMTTRACE_PPROF without `has_traces`: then only profiles are written. Throws std::system_error.
  explicit TraceStatusFile(const std::string& output, bool has_traces = true);
  ~TraceStatusFile();
  TraceStatusFile(const TraceStatusFile&) = delete;
  TraceStatusFile& operator=(const TraceStatusFile&) = delete;

  /// The value of CMTTRACE_STATUS for the command.
  std::string setting() const;
  /// The folder of the file, which is removed with it. Empty: the file was made by somebody else.
  std::string folder() const;
  struct Content {
    std::vector<BegunTrace> begun;  ///< the traces so far, in the order in which they began
    std::uint64_t refused = 0;  ///< processes that had loaded the tracer and could not be recorded; each has said why
    std::vector<UnrecordedProgram> unrecorded;  ///< those, and programs that cannot be recorded
    std::uint64_t elsewhere = 0;                ///< traces that do not have a name of ours, and are not looked at
  };
  Content read() const;
  std::vector<BegunTrace> begun() const { return read().begun; }
  bool has_traces() const { return has_traces_; }
  /// Returns a descriptor of inotify that is readable when a line was appended since, or -1. Some file systems report
  /// nothing.
  process::Fd watch() const;

 private:
  void make_file();

  TracePaths paths_;
  std::string path_;
  process::Fd own_file_;     // with the lock
  std::uint64_t begin_ = 0;  // the size of the file before
  bool is_ours_ = false;
  bool has_traces_ = true;
  bool is_of_launcher_ = false;  // the recorded processes do not create it
};

/// Whether there is such a process. It may be a zombie.
bool is_running(int process);

/// A trace, read after its end.
struct RecordedFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::string program{}, command{};  ///< empty where the trace does not name them
  int process = 0;
  std::uint64_t start_ns = 0, begin_ns = 0;  ///< as of its BegunTrace
  std::uint64_t lived_ns = 0;
  std::uint64_t events = 0, threads = 0, repairs = 0;
  bool is_readable = true;                ///< else counted as the collector reports
  bool is_finished = true;                ///< it has an end, which no error has caused
  bool breaks_off = false;                ///< the program went on, or may have gone on, after the trace's end
  bool is_sampled = false;                ///< all figures are of the samples alone
  std::optional<RunningTotals> totals{};  ///< of a whole .cmt
  std::uint64_t pool_blocks = 0;          ///< made in pools, of a whole .cmt; the totals have none of them
};

/// The sums over a command's traces.
struct RecordedTraces {
  std::uint64_t events = 0;
  std::uint64_t threads = 0;
  std::uint64_t bytes = 0;
  std::uint64_t repairs = 0;        ///< events that were lost or altered, without frees of blocks that were not seen
  std::vector<RecordedFile> files;  ///< readable ones first, of these those with the highest peak of live bytes
  std::vector<RecordedFile> left_out{};  ///< by leave_out(); no figure counts them
  unsigned unreadable = 0;  ///< traces that could not be read; the ended ones are counted as their collectors report
  unsigned unfinished = 0;  ///< traces without an end: still being recorded, or cut
  std::vector<BegunTrace> traces{};  ///< all of them, as they were in the end
  std::uint64_t refused = 0;         ///< processes that could not be recorded, although their programs can be
  std::vector<UnrecordedProgram> unrecorded{};  ///< these processes, and programs that cannot be recorded
  std::uint64_t elsewhere = 0;  ///< traces with other names than ours: of a launcher that the command has started
  unsigned of_others = 0;       ///< files of other users, which are counted by what their collectors report
  unsigned broken = 0;          ///< traces whose collector has failed or died
  unsigned faulty = 0;          ///< other traces that an error of libcmttrace.so has ended
  std::vector<std::string> encoding{};  ///< paths of traces of ended processes that were not waited for to the end
  int error = 0;                        ///< the errno of the first failure; 0: not known
};

/// Sleeps so many milliseconds, or until the descriptor `changes` is readable, and returns whether to stop waiting. -1:
/// there is no such descriptor.
using Pause = std::function<bool(int changes, int milliseconds)>;

/// Waits until the traces of a command that has ended are whole, and sums them up. A program does not wait for its
/// collector; so this waits while the collector of an ended process is at work. Processes that the command has left
/// running are waited for two seconds at most. Where `pause` stops the wait, traces of ended processes that are not
/// whole are not read, because that would wait for them. `complain` gets a line for each trace that cannot be read.
RecordedTraces wait_for_traces(const TraceStatusFile& traces, const std::function<void(const std::string&)>& complain,
                               const Pause& pause);

/// Moves the files that `is_left_out` chooses, and their traces, to RecordedTraces::left_out.
void leave_out(RecordedTraces& recorded, const std::function<bool(const RecordedFile&)>& is_left_out);

/// Whether nothing was recorded, a process was not recorded whose program can be, or a trace is incomplete for another
/// reason than a limit. Also whether a last profile could not be written.
bool has_failed(const RecordedTraces& recorded);

/// "4 programs not recorded: ./a.out (linked statically, 3 times) and sudo (other rights)". Empty if all were.
std::string list_unrecorded(const RecordedTraces& recorded);

/// The losses of the traces and their reasons, in words. Empty if nothing is missing.
std::vector<std::string> list_losses(const RecordedTraces& recorded);

}  // namespace cmt::launch
