#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace cmt::format {

/// One zstd frame a stream, with content size and checksum. Keeps its context between streams; not thread safe.
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

  /// The content of exactly one frame, which has to be `raw_size` bytes. Needs no memory beside it, whatever the frame
  /// claims. Throws WireError.
  void decompress(std::string_view frame, std::size_t raw_size, std::string& raw);

  /// The same, in memory of its own that is touched only where something is written to it.
  std::unique_ptr<char[]> decompress(std::string_view frame, std::size_t raw_size);

 private:
  static void check(std::string_view frame, std::size_t raw_size);
  void decompress_to(char* raw, std::string_view frame, std::size_t raw_size);

  ZSTD_DCtx_s* context_;
};

}  // namespace cmt::format
