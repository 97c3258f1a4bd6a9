// Compression of streams by zstd: one frame a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace cmt::format {

/// Compresses a stream to one zstd frame, with content size and checksum. Keeps its context between streams. Not thread
/// safe.
class Compressor {
 public:
  explicit Compressor(int level);
  ~Compressor();

  /// Valid until the next call.
  std::string_view compress(std::string_view raw);

 private:
  std::vector<char> frame_;
  ZSTD_CCtx_s* context_;
};

class Decompressor {
 public:
  Decompressor();
  ~Decompressor();

  /// Decompresses exactly one frame to `raw`. The content has to be `raw_size` bytes. Allocates no other memory,
  /// whatever the frame claims. Throws WireError.
  void decompress(std::string_view frame, std::size_t raw_size, std::string& raw);

  /// Decompresses exactly one frame to new memory, whose pages are touched only where content is written.
  std::unique_ptr<char[]> decompress(std::string_view frame, std::size_t raw_size);

 private:
  static void check(std::string_view frame, std::size_t raw_size);
  void decompress_to(char* raw, std::string_view frame, std::size_t raw_size);

  ZSTD_DCtx_s* context_;
};

}  // namespace cmt::format
