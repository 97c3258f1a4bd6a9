// Compresses an output by zlib or zstd, piece by piece.

#include "toolkit/files/compressed_output.h"

#include <zlib.h>
#include <zstd.h>

#include <cassert>
#include <new>
#include <vector>

namespace cmt::files {

/// Compresses a stream piece by piece.
class CompressedOutput::Encoder {
 public:
  virtual ~Encoder() = default;

  /// Takes all of the bytes, and writes what is ready; at the end, all.
  virtual void encode(std::string_view bytes, bool is_end, Output& output) = 0;

 protected:
  std::vector<char> buffer_ = std::vector<char>(std::size_t{64} * 1024);
};

class CompressedOutput::GzipEncoder : public Encoder {
 public:
  GzipEncoder() {
    constexpr int with_gzip_header = 16, memory_level = 8;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + with_gzip_header, memory_level,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~GzipEncoder() override { deflateEnd(&stream_); }

  void encode(std::string_view bytes, bool is_end, Output& output) override {
    constexpr std::size_t piece_max = std::size_t{1} << 30;  // its counts have 32 bits
    do {
      const std::string_view piece = bytes.substr(0, piece_max);
      bytes.remove_prefix(piece.size());
      encode_piece(piece, is_end && bytes.empty(), output);
    } while (!bytes.empty());
  }

 private:
  void encode_piece(std::string_view piece, bool is_end, Output& output) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, is_end ? Z_FINISH : Z_NO_FLUSH);
      output.write({buffer_.data(), buffer_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
    assert(stream_.avail_in == 0);
  }

  z_stream stream_{};
};

class CompressedOutput::ZstdEncoder : public Encoder {
 public:
  ZstdEncoder() : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }

  void encode(std::string_view bytes, bool is_end, Output& output) override {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      left = ZSTD_compressStream2(context_, &out, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) throw std::bad_alloc();  // the one error that valid calls have
      output.write({buffer_.data(), out.pos});
    } while (in.pos < in.size || (is_end && left != 0));
  }

 private:
  ZSTD_CCtx* context_;
};

Compression compression_of(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::gzip;
  return path.ends_with(".zst") ? Compression::zstd : Compression::none;
}

CompressedOutput::CompressedOutput(int fd, Compression compression, const std::string& name)
    : name_(name.empty() || name == "-" ? "writing" : name), output_(fd, name_.c_str()) {
  if (compression == Compression::gzip) encoder_ = std::make_unique<GzipEncoder>();
  if (compression == Compression::zstd) encoder_ = std::make_unique<ZstdEncoder>();
}

CompressedOutput::~CompressedOutput() = default;

void CompressedOutput::write(std::string_view bytes) {
  if (encoder_)
    encoder_->encode(bytes, false, output_);
  else
    output_.write(bytes);
}

void CompressedOutput::finish() {
  if (encoder_) encoder_->encode({}, true, output_);
}

}  // namespace cmt::files
