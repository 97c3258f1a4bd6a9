#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmt/header.h"
#include "libcmt/trace/ledger.h"
#include "preload/protocol.h"

namespace cmt::collector {

/// A file that could not be written.
struct OutputError {
  std::string path;
  int error = 0;
};

/// The trace's files, each in the form that its name asks for. A file can be whole for the time being, and go on.
class Outputs {
 public:
  /// Writes to `descriptors`, which are those of the paths. `keeper` may be one that is not made yet.
  Outputs(const Control& control, const std::vector<std::string>& paths, const std::vector<int>& descriptors,
          bool times, const BlockKeeper& keeper);

  /// Takes events, and returns how many at most it takes next. Throws OutputError, as the others do.
  std::size_t add(std::span<const BookedEvent> events);
  /// What was added is in the files, in blocks that are whole.
  void flush();
  /// Remembers where the files are: what is written from here on, by a copy of this process, makes them whole and is
  /// taken back when something follows.
  void begin_checkpoint();
  /// In that copy.
  void become_copy() { marks_.clear(); }
  void finish(const Repairs& repairs, bool truncated);
  /// Whether readers of the files wait for their end.
  void keep_readers(bool waiting) const;

  /// Whether files are whole as they are: nothing was added since the checkpoint.
  bool is_whole() const { return !marks_.empty(); }
  std::uint64_t bytes() const;
  /// How long each file is.
  std::vector<std::uint64_t> lengths() const;
  const Totals& totals() const { return tally_.totals(); }

 private:
  struct File {
    int fd;
    std::string path;
    std::unique_ptr<Output> output;
    std::unique_ptr<Sink> sink;
  };

  void go_on();
  template <class Action>
  void each(Action action);

  std::vector<File> files_;
  std::vector<std::int64_t> marks_;  // where the files go on after a checkpoint
  Tally tally_;
};

}  // namespace cmt::collector
