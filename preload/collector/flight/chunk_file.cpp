// The chunks of ChunkFile. An append that finds the disk full gives back the chunks that it has taken.

#include "preload/collector/flight/chunk_file.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>

#include "libcmt/trace/files.h"

namespace cmt::collector {
namespace {

[[noreturn]] void fail_to_keep(int error) { throw std::system_error(error, std::generic_category(), "kept events"); }

int open_chunks(const std::string& folder) {
  const int fd = open_nameless_file(folder);
  return fd >= 0 ? fd : open_temporary_file();
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

}  // namespace

ChunkFile::~ChunkFile() {
  if (file_ >= 0) ::close(file_);
}

std::uint32_t ChunkFile::take_chunk() {
  if (free_.empty()) return chunks_++;
  const std::uint32_t chunk = free_.back();
  free_.pop_back();
  return chunk;
}

bool ChunkFile::append(Chain& chain, std::string_view bytes) {
  assert(chain.chunks.size() == (chain.bytes + chunk_bytes - 1) / chunk_bytes);
  if (file_ < 0) file_ = open_chunks(folder_);
  const std::uint64_t bytes_before = chain.bytes;
  const std::size_t chunks_before = chain.chunks.size();
  while (!bytes.empty()) {
    const std::uint64_t at = chain.bytes % chunk_bytes;
    if (at == 0) chain.chunks.push_back(take_chunk());
    const std::size_t size = std::min<std::size_t>(bytes.size(), chunk_bytes - at);
    const auto offset = static_cast<off_t>(chain.chunks.back() * chunk_bytes + at);
    const ssize_t written = ::pwrite(file_, bytes.data(), size, offset);
    if (written == static_cast<ssize_t>(size)) {
      chain.bytes += size;
      bytes.remove_prefix(size);
      continue;
    }
    const int error = written < 0 ? errno : ENOSPC;  // a disk that becomes full accepts a part
    if (error == EINTR) {
      if (at == 0) free_.push_back(chain.chunks.back()), chain.chunks.pop_back();
      continue;
    }
    free_.insert(free_.end(), chain.chunks.begin() + static_cast<std::ptrdiff_t>(chunks_before), chain.chunks.end());
    chain.chunks.resize(chunks_before);
    chain.bytes = bytes_before;
    if (!is_full(error)) fail_to_keep(error);
    return false;
  }
  return true;
}

std::string ChunkFile::read(const Chain& chain, std::uint64_t offset, std::size_t size) const {
  assert(offset <= chain.bytes && size <= chain.bytes - offset);
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done != size;) {
    const std::uint64_t from = offset + done, at = from % chunk_bytes;
    const std::size_t part = std::min<std::size_t>(size - done, chunk_bytes - at);
    const ssize_t got = ::pread(file_, bytes.data() + done, part,
                                static_cast<off_t>(chain.chunks[from / chunk_bytes] * chunk_bytes + at));
    if (got != static_cast<ssize_t>(part) && !(got < 0 && errno == EINTR)) fail_to_keep(got < 0 ? errno : EIO);
    if (got > 0) done += part;
  }
  return bytes;
}

void ChunkFile::release(Chain& chain) {
  assert(free_.size() + chain.chunks.size() <= chunks_);
  free_.insert(free_.end(), chain.chunks.rbegin(), chain.chunks.rend());
  chain = {};
}

}  // namespace cmt::collector
