#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cmt/reader.h"
#include "cmt/repairs.h"
#include "trace2cmt/input/open_log.h"

namespace trace2cmt {

/// The traces of a command line as one. The first is read as it is; of each that follows
///
/// - tags are raised above all before, by the highest so far;
/// - threads likewise, so that none is of two files;
/// - addresses are raised by 2^48 for each file before, so that none is live twice: what a file leaves alive stays
/// alive;
/// - times go on from the last one so far, which is the new file's time 0;
///
/// and a mark with the file's name stands before each. What a later file gives back that it did not allocate has no
/// name in the whole: a free of it is dropped, a realloc made an allocation, and both counted as repairs.
class Inputs {
 public:
  /// Opens all, so that what is missing is said at once.
  Inputs(const std::vector<std::string>& paths, const From& from, const cmt::ReadOptions& options);

  /// Of several: the metadata in which all agree.
  cmt::Header header() const;

  /// Hands out all events until `take` returns false. An event's label lives until that returns.
  using Take = std::function<bool(const cmt::Event&)>;
  void read(const Take& take);

  /// The place of the event handed out last: "app.trace:12", "app.cmt: event 12".
  std::string place() const;

  /// So far.
  cmt::Repairs repairs() const;
  bool truncated() const { return !truncated_.empty(); }

  /// The files that break off, of those that were read to their end.
  const std::vector<std::string>& truncated_files() const { return truncated_; }

 private:
  struct File {
    std::string path;
    cmt::Reader reader;
  };

  bool begin_file(const File& file, const Take& take);
  bool take_joined(cmt::Event event, const Take& take);
  bool join(cmt::Event& event);
  void note(const cmt::Event& event);

  std::vector<File> files_;
  std::vector<std::string> truncated_;
  cmt::Repairs unnamed_;  // blocks of later files from before their begin
  std::size_t current_ = 0;
  std::size_t in_batch_ = 0;            // of what the current file's reader gave last
  cmt::Tag first_tag_ = cmt::unknown;   // of its allocations, as it says
  cmt::Tag tag_base_ = 0, newest_ = 0;  // what is added in the current file, and the highest handed out
  std::uint64_t thread_base_ = 0, threads_ = 0;
  std::uint64_t time_base_ = 0, last_time_ns_ = 0;
};

}  // namespace trace2cmt
