#include "format/zstd.h"

#include <zstd.h>

#include <new>

#include "format/cursor.h"

namespace cmt::format {

Compressor::Compressor(int level) : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
}

Compressor::~Compressor() { ZSTD_freeCCtx(context_); }

std::string Compressor::compress(std::string_view raw) {
  std::string frame(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress2(context_, frame.data(), frame.size(), raw.data(), raw.size());
  if (ZSTD_isError(size)) throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(size));
  frame.resize(size);
  return frame;
}

Decompressor::Decompressor() : context_(ZSTD_createDCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

Decompressor::~Decompressor() { ZSTD_freeDCtx(context_); }

void Decompressor::decompress(std::string_view frame, std::size_t raw_size, std::string& raw) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != raw_size ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    throw WireError(0, "not one whole frame of the stated size");
  }
  raw.resize(raw_size);
  const std::size_t size = ZSTD_decompressDCtx(context_, raw.data(), raw.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) || size != raw_size) throw WireError(0, "not one whole frame of the stated size");
}

}  // namespace cmt::format
