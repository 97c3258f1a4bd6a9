#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cmt::command {

/// A trace that a process of the command has begun.
struct Begun {
  int process = 0;
  std::string path;    ///< as seen from here
  bool ended = false;  ///< its collector has said so, and the next two
  int error = 0;       ///< an errno: why not all could be written
  std::int64_t collector_cpu_ns = 0;
};

/// The traces of a command and of what it starts, as libcmttrace.so and its collectors tell of them in a file
/// (CMTTRACE_STATUS): a line when one begins, another when it is whole.
class Traces {
 public:
  /// The file that CMTTRACE_STATUS names, from its end on, or else one of our own for as long as this lives: also
  /// where it names that of a launcher that is no more. Throws std::system_error.
  Traces();
  ~Traces();
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  /// CMTTRACE_STATUS for the command's environment.
  std::string setting() const;
  /// In the order in which they began.
  std::vector<Begun> begun() const;

 private:
  std::string path_;
  std::uint64_t begin_ = 0;  ///< what the file had before, in bytes
  bool is_ours_ = false;
  bool is_kept_by_others_ = false;  ///< than the processes that write to it: they do not make it
};

/// Whether a collector has a trace's file, and so may still write to it.
bool is_written(const std::string& path);
/// Whether there is such a process, though it may have ended and nobody has waited for it.
bool is_running(int process);

/// What a command's traces amount to.
struct Recorded {
  std::uint64_t events = 0;
  std::uint64_t threads = 0;
  std::uint64_t bytes = 0;
  std::uint64_t repairs = 0;  ///< events that were lost or altered
  unsigned files = 0;
  unsigned unfinished = 0;  ///< that break off: recorded still, or cut
  unsigned broken = 0;      ///< whose collector could not go on, or is dead
  int error = 0;            ///< an errno: why the first of them could not; 0: not known
};

/// Adds one trace. Throws FormatError and std::system_error.
void add_trace(const std::string& path, Recorded& recorded);

/// Sleeps so many milliseconds, and tells whether to wait no longer.
using Pause = std::function<bool(int milliseconds)>;

/// What the traces of a command that has ended amount to, once they are whole: a program does not wait for its trace,
/// so we do, as long as the collector of a process that has ended is at work. Processes that the command has left
/// behind have two seconds to end. `complain` is told what cannot be read.
Recorded wait_for_traces(const Traces& traces, const std::function<void(const std::string&)>& complain,
                         const Pause& pause);

}  // namespace cmt::command
