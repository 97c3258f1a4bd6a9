// Checks that zlib and zstd read back what was written in pieces.

#include "toolkit/files/compressed_output.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "toolkit/command/open_trace.h"

using namespace cmt;
using namespace cmt::files;

namespace {

/// A text that does not compress to nothing.
std::string long_text() {
  std::string text;
  for (std::uint32_t number = 1; text.size() < 500'000; number = number * 1664525 + 1013904223)
    text += std::to_string(number) + "\n";
  return text;
}

/// Writes a text in pieces, and returns the text that is read back.
std::string read_back(Compression compression, const std::string& text, std::size_t piece) {
  const int fd = memfd_create("compressed", MFD_CLOEXEC);
  CompressedOutput output(fd, compression);
  for (std::size_t at = 0; at < text.size(); at += piece) output.write(std::string_view(text).substr(at, piece));
  output.finish();
  lseek(fd, 0, SEEK_SET);
  const std::unique_ptr<Input> input = command::open_decompressed(fd, "compressed");
  const std::string found(input->peek(text.size() + 1));
  CHECK(input->missing().empty());
  return found;
}

}  // namespace

TEST_CASE("compressed output: zlib and zstd read the output back") {
  const std::string text = long_text();
  for (const Compression form : {Compression::none, Compression::gzip, Compression::zstd}) {
    CHECK(read_back(form, text, 100'000) == text);
    CHECK(read_back(form, text, 7) == text);
    CHECK(read_back(form, "", 1).empty());
  }
}

TEST_CASE("compressed output: the ending of the name chooses the form") {
  CHECK(compression_of("a.pb.gz") == Compression::gzip);
  CHECK(compression_of("a.zst") == Compression::zstd);
  CHECK(compression_of("a.gz.txt") == Compression::none);
}
