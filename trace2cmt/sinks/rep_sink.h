#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "libcmt/block_table.h"
#include "plain_calls.h"
#include "sink.h"

namespace trace2cmt {

/// Writes the traces of the malloc lab in Bryant and O'Hallaron, "Computer Systems: A Programmer's Perspective":
///
///     4096     suggested heap size: the peak of live bytes; the driver ignores it
///     1        ids
///     3        operations
///     1        weight
///     a 0 8    malloc: id, size
///     r 0 16   realloc
///     f 0      free
///
/// An id names a block through all its reallocs, is never used again, and none is left out: the driver checks that. Its
/// numbers are of type int. What is alive at the end is freed there, as in the lab's "balanced" traces. The counts in
/// the header are known last, so the operations wait in a temporary file.
class RepSink : public BookedSink {
 public:
  RepSink(int fd, Say say);

  void finish(const cmt::Repairs& repairs, bool truncated) override;

 protected:
  void put(const cmt::Event& event, const cmt::format::LiveBlock* old) override;

 private:
  static constexpr std::uint64_t number_limit = (std::uint64_t{1} << 31) - 1;

  struct Named {
    cmt::Tag tag = 0;
    std::uint64_t id = 0;
  };

  void put_line(char operation, std::uint64_t id, std::uint64_t size);
  void free_the_rest();
  void write_file();
  void flush();

  int fd_;
  Say say_;
  PlainCalls calls_{number_limit};
  cmt::BlockTable<Named> ids_;
  std::uint64_t id_count_ = 0;
  std::uint64_t operations_ = 0;
  std::string buffer_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> body_;
};

}  // namespace trace2cmt
