// Storage for the kept events of a flight recorder: a file whose space is used again, so that it never needs more than
// the kept bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::collector {

/// An unnamed file in the trace's folder, for bytes that are given back after a while. It consists of chunks. A chunk
/// that was given back last is used again first. So the file never becomes longer than the most bytes that were in it
/// at once, and only needs a file system that can write in place. Its pages are in the kernel's cache. If memory is
/// short, they go to the disk.
///
/// Threads: used by one. A forked copy may read, and append to chains of its own.
class ChunkFile {
 public:
  static constexpr std::uint64_t chunk_bytes = 64 * 1024;

  /// Bytes that are appended one after the other, and given back together.
  struct Chain {
    std::vector<std::uint32_t> chunks;
    std::uint64_t bytes = 0;
  };

  /// The file is made at the first append: in `folder`, or in the folder of temporary files.
  explicit ChunkFile(std::string folder) : folder_(std::move(folder)) {}
  ~ChunkFile();
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  /// Appends bytes to a chain. Returns false if the disk is full; then the chain is unchanged. Throws
  /// std::system_error.
  bool append(Chain& chain, std::string_view bytes);
  /// Returns bytes of a chain. Throws std::system_error.
  std::string read(const Chain& chain, std::uint64_t offset, std::size_t size) const;
  /// Gives the chain's chunks back, and empties it.
  void release(Chain& chain);

  /// The bytes of all chunks that chains have.
  std::uint64_t bytes_in_use() const { return (chunks_ - free_.size()) * chunk_bytes; }

 private:
  std::uint32_t take_chunk();

  const std::string folder_;
  int file_ = -1;
  std::uint32_t chunks_ = 0;         // in the file
  std::vector<std::uint32_t> free_;  // chunks of no chain
};

}  // namespace cmt::collector
