/// The traces of a command line as one trace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/trace/source.h"
#include "toolkit/trace/late_start.h"
#include "trace2cmt/input/open_log.h"
#include "trace2cmt/stacks/stack_copy.h"

namespace cmt::trace2cmt {

/// Reads the traces of a command line, joined to one. The first is read as it is. In each further one
///
/// - tags are raised by the highest tag so far;
/// - thread numbers are raised by the number of threads so far;
/// - addresses are raised by 2^48 for each file before, so that no address is live twice: blocks that a file leaves
/// alive
///   stay alive;
/// - times are raised by the last time so far;
/// - call stacks are those of a table that all files share, in which each has modules of its own.
///
/// A mark with the file's name comes before each file. A further file may free or resize a block that it did not
/// allocate. That block has no tag in the whole trace, so a free is dropped and a realloc becomes an allocation; both
/// count as repairs.
class Inputs {
 public:
  /// Opens all files, so that a missing one is reported at once.
  Inputs(const std::vector<std::string>& paths, const From& from, const cmt::ReadOptions& options);

  /// Of several files: the metadata in which all agree.
  cmt::Header header() const;

  /// The table of the events' stacks, which grows as they are read.
  const cmt::StackTable& stacks() const { return files_.size() > 1 ? joined_stacks_ : files_.front().reader.stacks(); }

  /// Calls `visit` with each event until it returns false. An event's label is valid until the call returns.
  using Visit = std::function<bool(const cmt::Event&)>;
  void read(const Visit& visit);

  /// Before the first read() of the one .cmt that there is: moves to where the next read() goes on for this slice.
  std::optional<cmt::trace::LateStart> start_late(const cmt::trace::SliceRange& range);

  /// After an error of read() in the one .cmt that there is: moves to the last keyframe that is behind the damage and
  /// not behind an event, from which the next read() goes on. Nothing where there is none.
  std::optional<cmt::BlockStart> skip_damage(std::uint64_t event);
  /// The live blocks before that keyframe.
  std::vector<cmt::LiveBlock> list_live_before(const cmt::BlockStart& keyframe);

  /// Calls `visit` with all events of the one file that there is, a batch at a time.
  void read_batches(const std::function<void(std::span<const cmt::Event>)>& visit);

  /// The source of the events, if read_batches() can be used, and the source knows the live blocks; else nullptr.
  const cmt::Source* booked_source() const;

  /// The place of the event visited last: "app.trace:12", "app.cmt: event 12".
  std::string place() const;

  cmt::Repairs repairs() const;
  bool truncated() const { return !truncated_.empty(); }

  /// The files that break off before their end.
  const std::vector<std::string>& truncated_files() const { return truncated_; }

  /// The files without an event.
  const std::vector<std::string>& empty_files() const { return empty_; }

 private:
  struct File {
    std::string path;
    cmt::Reader reader;
  };

  bool begin_file(const File& file, const Visit& visit);
  void end_file(const File& file);
  void begin_stacks(const File& file);
  bool join(cmt::Event& event);

  std::function<cmt::Reader(const std::string& path)> open_;
  std::vector<File> files_;
  std::vector<std::string> truncated_, empty_;
  cmt::Repairs repairs_;                // of joining
  std::size_t current_ = 0;             // file
  std::size_t in_batch_ = 0;            // index in the last batch of its reader
  cmt::Tag first_tag_ = cmt::unknown;   // of its allocations, before it is raised
  cmt::Tag tag_base_ = 0, newest_ = 0;  // what is added in the current file, and the highest so far
  std::uint64_t thread_base_ = 0, threads_ = 0;
  std::uint64_t time_base_ = 0, last_time_ns_ = 0;
  cmt::StackTable joined_stacks_;
  std::optional<StackCopy> stack_copy_;  // of the current file
};

}  // namespace cmt::trace2cmt
