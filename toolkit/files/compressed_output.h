/// An output that is compressed as the ending of its name says.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "libcmt/trace/files.h"

namespace cmt::files {

enum class Compression { none, gzip, zstd };

/// The compression that the ending of a file's name asks for: .gz or .zst.
Compression compression_of(std::string_view path);

/// Writes a file or a pipe, compressed or not. The same bytes always give the same file. Borrows the descriptor. Throws
/// std::system_error.
class CompressedOutput {
 public:
  /// Messages begin with the name of the file; empty or "-": it has none.
  CompressedOutput(int fd, Compression compression, const std::string& name = {});
  ~CompressedOutput();

  void write(std::string_view bytes);

  /// Writes the rest. To be called once, last.
  void finish();

 private:
  class Encoder;
  class GzipEncoder;
  class ZstdEncoder;

  std::string name_;
  Output output_;                     // has a pointer to the name
  std::unique_ptr<Encoder> encoder_;  // null: not compressed
};

}  // namespace cmt::files
