#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace cmt::command {

/// The files that a name for traces may stand for. The tracer never writes over a file, so what is new after a command
/// is what the command's processes wrote.
class Traces {
 public:
  /// `pattern` as CMTTRACE_OUT: %n, %p and %% are filled in, and a number may stand before the last dot.
  explicit Traces(const std::string& pattern);

  /// Those that were not there at first, by name.
  std::vector<std::string> added() const;

 private:
  std::set<std::string> matching() const;

  std::string folder_;
  std::string pattern_;  ///< of the name in the folder
  std::set<std::string> before_;
};

/// Whether a name is one that the pattern stands for.
bool stands_for(std::string_view pattern, std::string_view name);

/// What a command's traces amount to.
struct Recorded {
  std::uint64_t events = 0;
  std::uint64_t threads = 0;
  std::uint64_t bytes = 0;
  std::uint64_t repairs = 0;  ///< events that were lost or altered
  unsigned files = 0;
  unsigned unfinished = 0;  ///< that break off: recorded still, or cut
};

/// Adds one trace. Throws FormatError and std::system_error.
void add_trace(const std::string& path, Recorded& recorded);

/// What the traces of a command that has ended amount to. Of a program that was killed the collector writes the end a
/// moment later: it is waited for as long as the traces grow, and two seconds more. `complain` is told what cannot be
/// read.
Recorded wait_for_traces(const Traces& traces, const std::function<void(const std::string&)>& complain);

}  // namespace cmt::command
