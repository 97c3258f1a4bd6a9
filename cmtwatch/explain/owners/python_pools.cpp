// Finds the pools that CPython's allocator for objects of at most 512 bytes has (Objects/obmalloc.c). It asks the
// kernel for arenas, of 1 MiB from 3.10 on and of 256 KiB before, and cuts them into pools of 16 or 4 KiB. All blocks
// of a pool have one size. An arena has no header, so each pool is recognised by its own:
//
//     0   number of blocks in use
//     8   first free block, or null
//     16  next pool, 24 previous pool
//     32  number of the arena
//     36  size of its blocks, in units of 16 bytes (8 before 3.8), minus 1
//     40  offset of the next block that was never used
//     44  offset of the last block: bytes of a pool minus bytes of a block
//     48  the blocks
//
// Source: CPython 2.7 to 3.13. Builds without the lock of the interpreter have mimalloc instead.
#include <algorithm>
#include <string>

#include "cmtwatch/explain/owners/readers.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t pool_header_bytes = 48, small_bytes_max = 512;

struct Pool {
  std::uint64_t bytes = 0, block_bytes = 0, used_blocks = 0;
};

std::optional<Pool> parse_pool(std::uint64_t address, std::span<const std::uint8_t> head) {
  const std::uint64_t last_offset = read_at<std::uint32_t>(head, 44), next_offset = read_at<std::uint32_t>(head, 40);
  const std::uint64_t units = std::uint64_t{read_at<std::uint32_t>(head, 36)} + 1;
  Pool pool;
  pool.bytes = last_offset < 4096 ? 4096 : 16384;
  if (address % pool.bytes != 0 || last_offset >= pool.bytes) return std::nullopt;
  pool.block_bytes = pool.bytes - last_offset;
  if (pool.block_bytes > small_bytes_max) return std::nullopt;
  if (pool.block_bytes != units * 16 && pool.block_bytes != units * 8) return std::nullopt;
  if (next_offset < pool_header_bytes + pool.block_bytes || next_offset > pool.bytes) return std::nullopt;
  if ((next_offset - pool_header_bytes) % pool.block_bytes != 0) return std::nullopt;
  pool.used_blocks = read_at<std::uint32_t>(head, 0);
  if (pool.used_blocks > (next_offset - pool_header_bytes) / pool.block_bytes) return std::nullopt;
  const auto free_block = read_at<std::uint64_t>(head, 8);
  const bool has_free = address < free_block && free_block < address + pool.bytes;
  if (!has_free && free_block != 0) return std::nullopt;
  return pool;
}

// Pools of 4 KiB can begin on any page, so each is looked at. The name is that of the program or of its library, such
// as python2.7, python3.9 or libpython3.8.so.1.0.
bool may_have_old_pools(const Unclaimed& unclaimed) {
  const auto& mappings = unclaimed.memory().mappings();
  return std::any_of(mappings.begin(), mappings.end(), [](const process::Mapping& mapping) {
    constexpr std::string_view word = "python";
    const std::size_t at = mapping.name.rfind(word);
    if (at == std::string::npos) return false;
    const std::string_view version = std::string_view(mapping.name).substr(at + word.size());
    const bool has_two_digits = version.size() > 3 && version[3] >= '0' && version[3] <= '9';
    return version.starts_with("2.") || (version.starts_with("3.") && !has_two_digits);
  });
}

}  // namespace

std::optional<OwnedMemory> read_python_pools(const Unclaimed& unclaimed) {
  OwnedMemory python{.owner = "Python's small objects", .live_bytes = 0, .pieces = 0};
  std::uint64_t empty = 0, end = 0;
  unclaimed.each_head(may_have_old_pools(unclaimed) ? 4096 : 16384, pool_header_bytes,
                      [&](std::uint64_t address, std::span<const std::uint8_t> head) {
                        const auto pool = address < end ? std::nullopt : parse_pool(address, head);
                        if (!pool) return;
                        end = address + pool->bytes;
                        python.ranges.push_back({address, end});
                        *python.live_bytes += pool->used_blocks * pool->block_bytes;
                        ++*python.pieces;
                        empty += pool->used_blocks == 0 ? 1 : 0;
                      });
  if (python.ranges.empty()) return std::nullopt;
  python.remark = std::to_string(empty) + " of the pools are empty";
  return python;
}

}  // namespace cmt::watch::explain
