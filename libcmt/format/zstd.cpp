// Calls libzstd for Compressor and Decompressor, and checks a frame's stated size before it decompresses.

#include "libcmt/format/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "libcmt/format/coding.h"

namespace cmt::format {

Compressor::Compressor(int level) : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
}

Compressor::~Compressor() { ZSTD_freeCCtx(context_); }

std::string_view Compressor::compress(std::string_view raw) {
  frame_.resize(std::max(frame_.size(), ZSTD_compressBound(raw.size())));
  const std::size_t size = ZSTD_compress2(context_, frame_.data(), frame_.size(), raw.data(), raw.size());
  if (ZSTD_isError(size)) throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(size));
  assert(size <= frame_.size());
  return {frame_.data(), size};
}

Decompressor::Decompressor() : context_(ZSTD_createDCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

Decompressor::~Decompressor() { ZSTD_freeDCtx(context_); }

void Decompressor::check(std::string_view frame, std::size_t raw_size) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != raw_size ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    throw WireError(0, "not one whole frame of the stated size");
  }
}

void Decompressor::decompress_to(char* raw, std::string_view frame, std::size_t raw_size) {
  const std::size_t size = ZSTD_decompressDCtx(context_, raw, raw_size, frame.data(), frame.size());
  if (ZSTD_isError(size) || size != raw_size) throw WireError(0, "not one whole frame of the stated size");
}

void Decompressor::decompress(std::string_view frame, std::size_t raw_size, std::string& raw) {
  check(frame, raw_size);
  raw.resize(raw_size);
  decompress_to(raw.data(), frame, raw_size);
}

std::unique_ptr<char[]> Decompressor::decompress(std::string_view frame, std::size_t raw_size) {
  check(frame, raw_size);
  auto raw = std::make_unique_for_overwrite<char[]>(raw_size);
  decompress_to(raw.get(), frame, raw_size);
  return raw;
}

}  // namespace cmt::format
