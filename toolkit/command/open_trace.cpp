// The libraries for .gz, .zst, .xz and .bz2 work alike: each call consumes input and produces output, in both of which
// the caller has room. A Decoder hides their differences.
//
// A library that hides them as well does not serve here. libarchive 3.6 does not check gzip's checksum, ignores bytes
// after a stream, and decodes no zstd with a window above 128 MiB (`zstd --long=28`). Nor does Boost.Iostreams 1.74
// decode that; it reads cut zstd as empty, without an error, and takes 2.3 s for a .gz of 200 MB, where this takes 1.0
// s.

#include "toolkit/command/open_trace.h"

#include <bzlib.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>

#include "libcmt/trace/source.h"

namespace cmt::command {
namespace {

class Decoder {
 public:
  virtual ~Decoder() = default;

  struct Step {
    std::size_t consumed = 0;  ///< bytes of input
    std::size_t produced = 0;  ///< bytes of output
    bool is_ended = false;     ///< the stream is whole; the next step begins another
    bool is_damaged = false;
  };

  virtual Step step(std::string_view in, char* out, std::size_t room) = 0;

  virtual const char* name() const = 0;
};

/// zlib and bzlib count what they are given in 32 bits.
unsigned at_most_32_bits(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<unsigned>::max()));
}

/// The libraries' pointers to their input are not const, but they do not write there.
template <class Byte>
Byte* bytes_of(std::string_view in) {
  return reinterpret_cast<Byte*>(const_cast<char*>(in.data()));
}

class GzipDecoder : public Decoder {
 public:
  GzipDecoder() {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    stream_.next_in = bytes_of<Bytef>(in);
    stream_.avail_in = at_most_32_bits(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = at_most_32_bits(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    Step step;
    step.consumed = static_cast<std::size_t>(reinterpret_cast<const char*>(stream_.next_in) - in.data());
    step.produced = static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - out);
    step.is_ended = status == Z_STREAM_END;
    step.is_damaged = status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR;
    if (step.is_ended) inflateReset(&stream_);
    return step;
  }

  const char* name() const override { return "gzip"; }

 private:
  z_stream stream_{};
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDCtx()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    // Reads what `zstd --long=31` writes. Of so large a window, only the memory that the file needs is touched.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(stream_); }

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

class XzDecoder : public Decoder {
 public:
  XzDecoder() { start(); }
  ~XzDecoder() override { lzma_end(&stream_); }

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

class Bzip2Decoder : public Decoder {
 public:
  Bzip2Decoder() { start(); }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }

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

template <class Each>
std::unique_ptr<Decoder> make() {
  return std::make_unique<Each>();
}

struct Magic {
  std::string_view bytes;
  std::unique_ptr<Decoder> (*make)();
};

constexpr std::array<Magic, 4> magics{{{"\x1f\x8b\x08", make<GzipDecoder>},
                                       {"\x28\xb5\x2f\xfd", make<ZstdDecoder>},
                                       {std::string_view("\xfd\x37zXZ\0", 6), make<XzDecoder>},
                                       {"BZh", make<Bzip2Decoder>}}};
constexpr std::size_t longest_magic = 6;

/// For a file that begins with these bytes; null where it is not compressed.
std::unique_ptr<Decoder> make_decoder(std::string_view start) {
  for (const Magic& magic : magics) {
    if (start.starts_with(magic.bytes)) return magic.make();
  }
  return nullptr;
}

/// What the compressed streams of an input, one after the other, hold.
class DecompressedBytes : public Bytes {
 public:
  DecompressedBytes(std::unique_ptr<Input> compressed, std::unique_ptr<Decoder> decoder)
      : compressed_(std::move(compressed)), decoder_(std::move(decoder)) {}

  std::size_t read(char* to, std::size_t room) override {
    while (!at_end_) {
      const std::string_view in = compressed_->peek(1);
      if (in.empty() && !in_stream_) break;
      const Decoder::Step step = decoder_->step(in, to, room);
      if (step.is_damaged) fail(in_stream_ ? " data is damaged" : " data is followed by something else");
      compressed_->skip(step.consumed);
      in_stream_ = !step.is_ended;
      at_end_ = in.empty() && step.produced == 0;
      if (step.produced != 0) return step.produced;
    }
    at_end_ = true;
    return 0;
  }

  std::string missing() const override {
    return in_stream_ && at_end_ ? std::string(decoder_->name()) + " data is cut off" : std::string();
  }

  std::uint64_t taken() const override { return compressed_->offset(); }
  std::uint64_t size() const override { return compressed_->size(); }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw FormatError(compressed_->place(compressed_->offset()), std::string(decoder_->name()) + what);
  }

  std::unique_ptr<Input> compressed_;
  std::unique_ptr<Decoder> decoder_;
  bool in_stream_ = true;
  bool at_end_ = false;
};

struct FirstBytes {
  std::string bytes;
  bool are_consumed;  ///< they cannot be read again: it is a pipe
};

FirstBytes first_bytes(int fd, const std::string& name) {
  std::string start(longest_magic, '\0');
  std::size_t got = 0;
  struct stat status;
  const off_t position = lseek(fd, 0, SEEK_CUR);
  const bool is_pipe = fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || position < 0;
  while (got < start.size()) {
    const ssize_t n = is_pipe ? read(fd, start.data() + got, start.size() - got)
                              : pread(fd, start.data() + got, start.size() - got, position + static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), name == "-" ? "standard input" : name);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  start.resize(got);
  return {start, is_pipe};
}

}  // namespace

std::unique_ptr<Input> open_decompressed(const std::string& path) { return open_decompressed(open_input(path), path); }

std::unique_ptr<Input> open_decompressed(int fd, const std::string& name) {
  const FirstBytes first = first_bytes(fd, name);
  auto input = std::make_unique<Input>(fd, name, first.are_consumed ? first.bytes : std::string());
  std::unique_ptr<Decoder> decoder = make_decoder(first.bytes);
  if (!decoder) return input;
  return std::make_unique<Input>(std::make_unique<DecompressedBytes>(std::move(input), std::move(decoder)), name);
}

Reader open_trace(const std::string& path, ReadOptions options) {
  return open_trace(open_input(path), path, std::move(options));
}

Reader open_trace(int fd, const std::string& name, ReadOptions options) {
  return Reader(std::make_unique<Reader::Impl>(open_decompressed(fd, name), std::move(options), choose_source));
}

}  // namespace cmt::command
