#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace cmt::format {

/// One zstd frame a stream, with content size and checksum. Keeps its context between streams; not thread safe.
class Compressor {
 public:
  explicit Compressor(int level);
  ~Compressor();

  std::string compress(std::string_view raw);

 private:
  ZSTD_CCtx_s* context_;
};

class Decompressor {
 public:
  Decompressor();
  ~Decompressor();

  /// The content of exactly one frame, which has to be `raw_size` bytes. Needs no memory beside it, whatever the frame
  /// claims. Throws WireError.
  void decompress(std::string_view frame, std::size_t raw_size, std::string& raw);

 private:
  ZSTD_DCtx_s* context_;
};

}  // namespace cmt::format
