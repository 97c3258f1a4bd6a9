#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcmt/trace/files.h"
#include "plain_calls.h"
#include "sink.h"

namespace trace2cmt {

/// Writes the .cmt of 2019, such that its own replayer takes it (LegacyDecoder has the bytes). Two facts of that one
/// shape the writing:
///
/// - It takes numbers of four bytes at most, 28 bits: larger sizes, and distances to blocks older than 268,435,455
///   tags, cannot be said.
/// - It refuses a trace in which the very first tag is ever given back. So the first record steps by 2, and no block
/// has
///   tag 1.
///
/// Tags keep their differences, unless one is too large to be said.
class LegacySink : public BookedSink {
 public:
  LegacySink(int fd, Say say) : output_(fd), say_(std::move(say)) {}

  void finish(const cmt::Repairs& repairs, bool truncated) override;

 protected:
  void put(const cmt::Event& event, const cmt::format::LiveBlock* old) override;

 private:
  static constexpr std::uint64_t number_limit = (1 << 28) - 1;

  /// From this tag on, tags of the file are so much smaller than those of the trace.
  struct Shift {
    cmt::Tag from;
    std::uint64_t less;
  };

  void put_number(std::uint64_t number);
  std::uint64_t step_to(cmt::Tag tag);
  cmt::Tag in_file(cmt::Tag tag) const;

  cmt::Output output_;
  Say say_;
  PlainCalls calls_{number_limit};
  std::string buffer_;
  std::vector<Shift> shifts_;
  cmt::Tag newest_ = 0;  // of the trace
};

}  // namespace trace2cmt
