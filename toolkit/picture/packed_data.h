/// The data of a page, compressed while they come: some reports have many megabytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cmt::picture {

/// Compresses a text that comes piece by piece to one stream of gzip. The stream does not depend on the pieces, nor on
/// the threads. Memory: what was compressed, and 1 MiB a thread.
class PackedData {
 public:
  /// `jobs`: how many threads work at once.
  explicit PackedData(unsigned jobs = 1);

  void append(std::string_view text);
  /// The whole stream. To be called once, last.
  std::string finish();

 private:
  void pack(std::size_t pieces, bool is_end);

  unsigned jobs_;
  std::string text_;       // packed text that the rest may refer to, then the rest
  std::size_t known_ = 0;  // the bytes of packed text in it
  std::string packed_;
  std::uint32_t checksum_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace cmt::picture
