// The four libraries behind .gz, .zst, .xz and .bz2, made alike: each is a loop over (next byte in, room out), and each
// names its fields differently. A generic stream library would hide that as well, but none decodes zstd with windows
// above 128 MiB, and what it says of damaged files is no message for a person.

#include "toolkit/command/codecs.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

namespace cmt::command {
namespace {

/// What zlib and bzlib take at once: their counters have 32 bits.
unsigned at_most_32_bits(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<unsigned>::max()));
}

/// Their inputs are not const; neither writes there.
template <class Byte>
Byte* bytes_of(std::string_view in) {
  return reinterpret_cast<Byte*>(const_cast<char*>(in.data()));
}

class Gzip : public Codec {
 public:
  Gzip() {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    stream_.next_in = bytes_of<Bytef>(in);
    stream_.avail_in = at_most_32_bits(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = at_most_32_bits(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    Step step;
    step.taken = static_cast<std::size_t>(reinterpret_cast<const char*>(stream_.next_in) - in.data());
    step.given = static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - out);
    step.is_ended = status == Z_STREAM_END;
    step.is_damaged = status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR;
    if (step.is_ended) inflateReset(&stream_);
    return step;
  }

  const char* name() const override { return "gzip"; }

 private:
  z_stream stream_{};
};

class Zstd : public Codec {
 public:
  Zstd() : stream_(ZSTD_createDCtx()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    // `zstd --long=31`: memory is only touched as far as the file really reaches back.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  }
  ~Zstd() override { ZSTD_freeDCtx(stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const std::size_t status = ZSTD_decompressStream(stream_, &to, &from);
    return {from.pos, to.pos, status == 0, ZSTD_isError(status) != 0};
  }

  const char* name() const override { return "zstd"; }

 private:
  ZSTD_DCtx* stream_;
};

class Xz : public Codec {
 public:
  Xz() { start(); }
  ~Xz() override { lzma_end(&stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    stream_.next_in = bytes_of<const std::uint8_t>(in);
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out);
    stream_.avail_out = room;
    const lzma_ret status = lzma_code(&stream_, LZMA_RUN);
    const Step step{in.size() - stream_.avail_in, room - stream_.avail_out, status == LZMA_STREAM_END,
                    status != LZMA_OK && status != LZMA_STREAM_END && status != LZMA_BUF_ERROR};
    if (step.is_ended) start();
    return step;
  }

  const char* name() const override { return "xz"; }

 private:
  void start() {
    if (lzma_stream_decoder(&stream_, std::uint64_t{4} << 30, 0) != LZMA_OK) throw std::bad_alloc();
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Bzip2 : public Codec {
 public:
  Bzip2() { start(); }
  ~Bzip2() override { BZ2_bzDecompressEnd(&stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    stream_.next_in = bytes_of<char>(in);
    stream_.avail_in = at_most_32_bits(in.size());
    stream_.next_out = out;
    stream_.avail_out = at_most_32_bits(room);
    const int status = BZ2_bzDecompress(&stream_);
    const Step step{static_cast<std::size_t>(stream_.next_in - in.data()),
                    static_cast<std::size_t>(stream_.next_out - out), status == BZ_STREAM_END,
                    status != BZ_OK && status != BZ_STREAM_END};
    if (step.is_ended) {
      BZ2_bzDecompressEnd(&stream_);
      start();
    }
    return step;
  }

  const char* name() const override { return "bzip2"; }

 private:
  void start() {
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }

  bz_stream stream_{};
};

template <class Way>
std::unique_ptr<Codec> make() {
  return std::make_unique<Way>();
}

struct Magic {
  std::string_view bytes;
  std::unique_ptr<Codec> (*make)();
};

constexpr std::array<Magic, 4> magics{{{"\x1f\x8b\x08", make<Gzip>},
                                       {"\x28\xb5\x2f\xfd", make<Zstd>},
                                       {std::string_view("\xfd\x37zXZ\0", 6), make<Xz>},
                                       {"BZh", make<Bzip2>}}};

}  // namespace

std::unique_ptr<Codec> find_codec(std::string_view start) {
  for (const Magic& magic : magics) {
    if (start.starts_with(magic.bytes)) return magic.make();
  }
  return nullptr;
}

}  // namespace cmt::command
