#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::collector {

/// A file without a name, beside the trace, for bytes that are given back after a while. It consists of chunks that are
/// used again, those given back last first: so it never becomes longer than what was in it at once, and needs nothing
/// of the file system but to write in place. Its pages are the kernel's cache: memory that is short goes to the disk.
///
/// Threads: used by one. A forked copy may read, and append to chains of its own.
class ChunkFile {
 public:
  static constexpr std::uint64_t chunk_bytes = 64 * 1024;

  /// Bytes that were appended one after the other, and are given back together.
  struct Chain {
    std::vector<std::uint32_t> chunks;
    std::uint64_t bytes = 0;
  };

  /// The file is made when something is appended: in `folder`, or in that of temporary files.
  explicit ChunkFile(std::string folder) : folder_(std::move(folder)) {}
  ~ChunkFile();
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  /// False where the disk is full: then the chain is as it was. Throws std::system_error.
  bool append(Chain& chain, std::string_view bytes);
  /// Bytes that were appended. Throws std::system_error.
  std::string read(const Chain& chain, std::uint64_t offset, std::size_t size) const;
  /// Gives the chain's chunks back, and empties it.
  void release(Chain& chain);

  /// Of the chunks that chains have.
  std::uint64_t bytes_in_use() const { return (chunks_ - free_.size()) * chunk_bytes; }

 private:
  std::uint32_t take_chunk();

  const std::string folder_;
  int file_ = -1;
  std::uint32_t chunks_ = 0;         // that the file has
  std::vector<std::uint32_t> free_;  // those of no chain
};

}  // namespace cmt::collector
