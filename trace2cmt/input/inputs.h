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

/// Reads the traces of a command line, joined to one. The first trace stays as it is. In each further trace
///
/// - tags are raised by the highest tag so far;
/// - numbers of pools' blocks are raised by the highest such number so far;
///
/// - thread numbers are raised by the number of threads so far;
///
/// - addresses are raised by 2^48 for each file before, because blocks that a file leaves alive stay alive, and no
///   address may be live twice. A file that is itself joined counts as several files;
///
/// - times are raised by the last time so far;
/// - call stacks are in one table for all files, in which each file has its own modules.
///
/// A mark with the file's name comes before each file. A further file may free or resize a block that it did not
/// allocate. Such a block has no tag in the joined trace. So the free is dropped, and the realloc becomes an
/// allocation. Both count as repairs. So does the free of a pool's block that its file did not make.
class Inputs {
 public:
  /// Opens all files, so that a missing one is reported at once. `has_samples`: of the output's form. Throws
  /// FormatError for a sampled trace in another form, or joined to others, whose blocks its interval would not hold
  /// for.
  Inputs(const std::vector<std::string>& paths, const From& from, const cmt::ReadOptions& options, bool has_samples);

  /// Calls this for each batch that is read, with the file, the bytes that are read and those that it has (0: not
  /// known).
  using Progress = std::function<void(const std::string& path, std::uint64_t bytes, std::uint64_t all)>;
  void report_to(Progress progress) { progress_ = std::move(progress); }

  /// The header of the joined trace. It has the metadata in which all files agree.
  cmt::Header header() const;

  /// The table of the events' stacks, which grows as they are read.
  /// The stretches of the recording, at its end. Nothing of several inputs, whose times are apart.
  std::vector<cmt::RunStretch> stretches() const {
    return files_.size() > 1 ? std::vector<cmt::RunStretch>() : files_.front().reader.stretches();
  }
  /// The samples that the recorder lost, at the end. Sampled traces are not joined.
  std::uint64_t samples_lost() const {
    const std::optional<cmt::Totals>& totals = files_.front().reader.totals();
    return totals ? totals->samples_lost : 0;
  }
  const cmt::StackTable& stacks() const { return files_.size() > 1 ? joined_stacks_ : files_.front().reader.stacks(); }

  /// Calls `visit` with each event until it returns false. An event's label is valid until the call returns.
  using Visit = std::function<bool(const cmt::Event&)>;
  void read(const Visit& visit);

  /// Moves the only .cmt to a place before this slice, where the next read() begins. To be called before the first
  /// read().
  std::optional<cmt::trace::LateStart> start_late(const cmt::trace::SliceRange& range);

  /// Moves the only .cmt to the last keyframe that is after the damage and not after an event. The next read() begins
  /// there. Returns nothing if there is no such keyframe. To be called after an error of read().
  std::optional<cmt::BlockStart> skip_damage(std::uint64_t event);
  /// The live blocks before that keyframe.
  std::vector<cmt::LiveBlock> list_live_before(const cmt::BlockStart& keyframe);

  /// Calls `visit` with all events of the only file, a batch at a time.
  void read_batches(const std::function<void(std::span<const cmt::Event>)>& visit);

  /// The source of the events, if there is only one file and its source knows the live blocks; else nullptr.
  const cmt::Source* booked_source() const;

  /// The place of the last visited event: "app.trace:12", "app.cmt: event 12".
  std::string place() const;

  cmt::Repairs repairs() const;
  bool truncated() const { return !truncated_.empty(); }

  /// The files that break off before their end.
  const std::vector<std::string>& truncated_files() const { return truncated_; }

  /// The files without an event.
  const std::vector<std::string>& empty_files() const { return empty_; }

 private:
  bool is_sampled() const { return files_.front().reader.header().sampled() != 0; }

  struct File {
    std::string path;
    cmt::Reader reader;
  };

  bool begin_file(const File& file, const Visit& visit);
  void end_file(const File& file);
  void begin_stacks(const File& file);
  bool join(cmt::Event& event);
  void repair(cmt::Repair kind);

  void report(const File& file) const {
    if (progress_) progress_(file.path, file.reader.bytes_read(), file.reader.bytes_total());
  }

  std::function<cmt::Reader(const std::string& path)> open_;
  bool is_strict_;  // a repair is an error
  Progress progress_;
  std::vector<File> files_;
  std::vector<std::string> truncated_, empty_;
  cmt::Repairs repairs_;                           // made by joining
  std::size_t current_ = 0;                        // file
  std::size_t in_batch_ = 0;                       // index in the last batch of its reader
  cmt::Tag first_tag_ = cmt::unknown;              // first tag of its allocations, before it is raised
  cmt::Tag tag_base_ = 0, newest_ = 0;             // what is added to tags of the current file, and the highest tag
  std::uint64_t first_pool_block_ = cmt::unknown;  // the three numbers of tags, for blocks of pools
  std::uint64_t pool_base_ = 0, newest_pool_block_ = 0;
  std::uint64_t address_base_ = 0, last_address_ = 0;  // what is added to addresses, and the highest of a block
  std::uint64_t thread_base_ = 0, threads_ = 0;
  std::uint64_t time_base_ = 0, last_time_ns_ = 0;
  cmt::StackTable joined_stacks_;
  std::optional<StackCopy> stack_copy_;  // of the current file
};

}  // namespace cmt::trace2cmt
