// Storage for the kept events of a flight recorder: a file whose space is used again, so that it never needs more than
// the kept bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::collector {

/// An unnamed file in the trace's folder, for bytes that are given back after a while. It consists of chunks. A chunk
/// that was given back last is used again first. So the file never becomes longer than the most bytes that were in it
/// at once, and only needs a file system that can write in place. Its pages are in the kernel's cache. If memory is
/// short, they go to the disk.
///
/// While the disk is full, new bytes are in memory, up to a bound. They move to the file as soon as it takes them.
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
  explicit ChunkFile(std::string folder, std::uint64_t memory_max = 0)
      : folder_(std::move(folder)), memory_max_(memory_max) {}
  ~ChunkFile();
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  /// Appends bytes to a chain. Returns false if the disk is full and so is the memory; then the chain is unchanged.
  /// With `may_exceed`, memory has no bound.
  bool append(Chain& chain, std::string_view bytes, bool may_exceed = false);
  /// Returns bytes of a chain. Throws std::system_error.
  std::string read(const Chain& chain, std::uint64_t offset, std::size_t size) const;
  /// Gives the chain's chunks back, and empties it.
  void release(Chain& chain);

  /// The bytes of all chunks that chains have.
  std::uint64_t bytes_in_use() const { return (chunks_ - free_.size() - holes_.size()) * chunk_bytes; }
  /// The bytes that are in memory.
  std::uint64_t memory_bytes() const { return memory_bytes_; }
  /// How many bytes there is room for if the disk stays full.
  std::uint64_t room() const { return (chunks_ - holes_.size() - in_memory_.size()) * chunk_bytes + memory_max_; }

 private:
  /// The end of a chunk, from an offset in it.
  struct End {
    std::uint64_t at = 0;
    std::string bytes;
  };

  std::uint32_t take_chunk();
  bool write(std::uint32_t chunk, std::uint64_t at, std::string_view bytes);
  void move_to_file();

  const std::string folder_;
  const std::uint64_t memory_max_;
  int file_ = -1;
  std::uint32_t chunks_ = 0;                // in the file
  std::vector<std::uint32_t> free_;         // chunks of no chain
  std::vector<std::uint32_t> holes_;        // such chunks for which the disk may have no space
  std::map<std::uint32_t, End> in_memory_;  // what the file did not take
  std::uint64_t memory_bytes_ = 0;          // of in_memory_
};

}  // namespace cmt::collector
