// A log is a recording of another tool, in lines of text. Each format is read by one file of this folder, which defines
// a LogFormat: how a log of the format is recognised, and a parser of its lines. To add a format, write such a file,
// name the LogFormat in the list of log_format.cpp, and put a sample into tests/logs/samples.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmt/event.h"
#include "cmt/stacks.h"
#include "libcmt/number_hash.h"

namespace cmt::logs {

/// A log holds several processes, and none was chosen.
class SeveralProcesses : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A log states a format of its own, in a number that its parser does not know.
class UnknownFormat : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The records of a log that are no calls of the allocator: how many there are of each kind.
using LeftOut = std::map<std::string, std::uint64_t>;

/// "3 puts, 1 exit, 1 strlen": the five most frequent kinds, and how many records are of other kinds.
std::string list_kinds(const LeftOut& left_out);

/// The results of a LogParser: the events of the last line, and what it has learnt about the whole log.
class ParsedLog {
 public:
  /// Without a pid the log may hold one process only.
  explicit ParsedLog(std::optional<std::uint64_t> pid = std::nullopt) : pid_(pid), is_chosen_(pid.has_value()) {}

  /// One that collects the pids of a log, and wants no events.
  static ParsedLog of_processes() {
    ParsedLog log;
    log.collects_processes_ = true;
    return log;
  }

  // For parsers:

  /// Whether events of this process are wanted. Throws SeveralProcesses for a second one if none was chosen.
  bool wants_process(std::uint64_t pid, std::string_view program = {});

  /// Whether events of this thread are wanted, for a log that does not distinguish processes from threads.
  bool wants_thread(std::uint64_t id) {
    const bool is_wanted = note_process(id) && (!is_chosen_ || pid_ == id);
    has_any_ |= is_wanted;
    return is_wanted;
  }

  /// The number, from 0, of a thread that the log calls `id`.
  std::uint32_t thread_number(std::uint64_t id);

  /// Nanoseconds since the first time of the log. For times since 1970, the first becomes the header's start.
  std::uint64_t since_start(std::uint64_t time_ns);
  std::uint64_t since_unix_start(std::uint64_t unix_ns);

  void add_event(const cmt::Event& event) { events_.push_back(event); }

  /// The line is a record of another kind, which holds no call of the allocator.
  void leave_out(std::string_view kind) { ++left_out_[std::string(kind)]; }

  /// The line is not of this format: it should have had what is `expected`.
  void reject_line(std::string_view expected) { expected_ = expected; }

  /// Adds an entry of the trace's header (format-spec/text.md). Entries after the first event are ignored.
  void add_metadata(std::string_view key, std::string_view value);

  /// The table of the events' stacks; nullptr if they are not wanted.
  cmt::StackTable* stacks() const { return stacks_; }

  /// The addresses of events are only names of blocks. To be called before the first event.
  void set_names_only() { names_only_ = true; }

  // For the caller of a parser:

  /// Wants call stacks, in this table, which is borrowed.
  void use_stacks(cmt::StackTable& stacks) { stacks_ = &stacks; }

  /// Forgets the events of the last line.
  void next_line() {
    events_.clear();
    expected_ = {};
  }

  const std::vector<cmt::Event>& events() const { return events_; }
  /// The part that a rejected line lacks; empty if the line was not rejected.
  std::string_view expected() const { return expected_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  bool names_only() const { return names_only_; }
  const LeftOut& left_out() const { return left_out_; }

  std::optional<std::uint64_t> chosen_pid() const { return is_chosen_ ? pid_ : std::nullopt; }

  /// Whether there was a line of a process that is wanted.
  bool has_any() const { return has_any_; }
  /// Whether there was a line of a process that is not wanted.
  bool has_others() const { return has_others_; }
  const std::set<std::uint64_t>& processes() const { return processes_; }

 private:
  bool note_process(std::uint64_t id) {
    if (collects_processes_) processes_.insert(id);
    return !collects_processes_;
  }

  std::optional<std::uint64_t> pid_;
  bool is_chosen_;
  bool has_any_ = false;
  bool has_others_ = false;
  bool collects_processes_ = false;
  bool names_only_ = false;
  cmt::StackTable* stacks_ = nullptr;
  std::set<std::uint64_t> processes_;
  LeftOut left_out_;
  std::optional<std::uint64_t> start_ns_;
  std::uint64_t last_thread_id_ = 0;
  std::uint32_t last_thread_ = 0;
  tsl::robin_map<std::uint64_t, std::uint32_t, cmt::NumberHash> threads_;
  std::vector<cmt::Event> events_;
  std::string_view expected_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// Parses the lines of one log, in order. It knows no file.
class LogParser {
 public:
  virtual ~LogParser() = default;

  /// Adds the events of a line, without its end, to `log`, or rejects the line. Lines about other things add nothing.
  virtual void parse(std::string_view line, ParsedLog& log) = 0;

  /// Called after the last line.
  virtual void end(ParsedLog&) {}
};

struct LogFormat {
  std::string_view name;      ///< as --from takes it
  std::string_view recorder;  ///< for the trace's header, unless the log names its recorder

  /// Whether a line can only be of this format: by the first such line a log is recognised.
  bool (*identifies)(std::string_view line);

  std::unique_ptr<LogParser> (*make_parser)();

  bool ends_lines = true;   ///< a last line without LF was cut off
  bool has_stacks = false;  ///< each allocation has a call stack
};

std::span<const LogFormat> log_formats();

/// The format of this name, or nullptr.
const LogFormat* find_log_format(std::string_view name);

/// The format of a log that begins with these bytes, or nullptr.
const LogFormat* recognise_log_format(std::string_view start);

/// How many bytes of a log recognise_log_format() should get.
inline constexpr std::size_t recognition_bytes = 64 * 1024;

template <class Parser>
std::unique_ptr<LogParser> make_parser() {
  return std::make_unique<Parser>();
}

}  // namespace cmt::logs
