// Checks that a compressed input takes no more memory than its size warrants.

#include "toolkit/command/open_trace.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <string>

#include "cmt/error.h"

using cmt::command::open_decompressed;

namespace {

/// 48 MiB of one byte, compressed with a window of so many bits.
std::string repetitive_zstd(int window_log) {
  const std::string raw(std::size_t{48} << 20, 'x');
  std::string packed(1 << 16, '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  ZSTD_inBuffer in{raw.data(), raw.size(), 0};
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  while (ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) != 0) {
  }
  ZSTD_freeCCtx(context);
  packed.resize(out.pos);
  return packed;
}

std::uint64_t bytes_in(const std::string& packed) {
  const int fd = memfd_create("packed", MFD_CLOEXEC);
  REQUIRE(pwrite(fd, packed.data(), packed.size(), 0) == static_cast<ssize_t>(packed.size()));
  const auto input = open_decompressed(fd, "packed");
  for (std::string_view piece = input->peek(1); !piece.empty(); piece = input->peek(1)) input->skip(piece.size());
  return input->offset();
}

}  // namespace

TEST_CASE("compressed input: few bytes with a large window are refused once they fill it") {
  CHECK(bytes_in(repetitive_zstd(20)) == std::size_t{48} << 20);
  const std::string packed = repetitive_zstd(26);
  CHECK(packed.size() < 10000);
  CHECK_THROWS_AS(bytes_in(packed), cmt::FormatError);
}
