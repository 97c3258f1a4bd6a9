// The chunks of ChunkFile. Bytes that the file does not take stay in memory, and every append tries again to write
// them.

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

/// Returns -1 if there can be no file.
int open_chunks(const std::string& folder) {
  const int fd = open_nameless_file(folder);
  if (fd >= 0) return fd;
  try {
    return open_temporary_file();
  } catch (const std::system_error&) {
    return -1;
  }
}

}  // namespace

ChunkFile::~ChunkFile() {
  if (file_ >= 0) ::close(file_);
}

std::uint32_t ChunkFile::take_chunk() {
  std::vector<std::uint32_t>& from = free_.empty() ? holes_ : free_;
  if (from.empty()) return chunks_++;
  const std::uint32_t chunk = from.back();
  from.pop_back();
  return chunk;
}

/// Writes a part of a chunk. Returns whether the file has taken all of it. Why it has not is no matter: memory has the
/// bytes then.
bool ChunkFile::write(std::uint32_t chunk, std::uint64_t at, std::string_view bytes) {
  if (file_ < 0) file_ = open_chunks(folder_);
  if (file_ < 0) return false;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(chunk * chunk_bytes + at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += static_cast<std::uint64_t>(written);  // a disk that becomes full accepts a part
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void ChunkFile::move_to_file() {
  while (!in_memory_.empty()) {
    const auto first = in_memory_.begin();
    if (!write(first->first, first->second.at, first->second.bytes)) return;
    memory_bytes_ -= first->second.bytes.size();
    in_memory_.erase(first);
  }
}

bool ChunkFile::append(Chain& chain, std::string_view bytes, bool may_exceed) {
  assert(chain.chunks.size() == (chain.bytes + chunk_bytes - 1) / chunk_bytes);
  move_to_file();
  const std::uint64_t bytes_before = chain.bytes;
  const std::size_t chunks_before = chain.chunks.size();
  while (!bytes.empty()) {
    const std::uint64_t at = chain.bytes % chunk_bytes;
    if (at == 0) chain.chunks.push_back(take_chunk());
    const std::uint32_t chunk = chain.chunks.back();
    const std::string_view part = bytes.substr(0, chunk_bytes - at);
    if (in_memory_.contains(chunk) || !write(chunk, at, part)) {
      // If all of the rest fits, nothing can fail later. So there is nothing in memory that would have to go again.
      if (!may_exceed && memory_bytes_ + bytes.size() > memory_max_) {
        if (at == 0) holes_.push_back(chunk), chain.chunks.pop_back();
        for (; chain.chunks.size() > chunks_before; chain.chunks.pop_back()) free_.push_back(chain.chunks.back());
        chain.bytes = bytes_before;
        return false;
      }
      in_memory_.try_emplace(chunk, End{at, ""}).first->second.bytes += part;
      memory_bytes_ += part.size();
    }
    chain.bytes += part.size();
    bytes.remove_prefix(part.size());
  }
  return true;
}

std::string ChunkFile::read(const Chain& chain, std::uint64_t offset, std::size_t size) const {
  assert(offset <= chain.bytes && size <= chain.bytes - offset);
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done != size;) {
    const std::uint64_t from = offset + done, at = from % chunk_bytes;
    const std::uint32_t chunk = chain.chunks[from / chunk_bytes];
    std::size_t part = std::min<std::size_t>(size - done, chunk_bytes - at);
    const auto end = in_memory_.find(chunk);
    if (end != in_memory_.end() && at >= end->second.at) {
      end->second.bytes.copy(bytes.data() + done, part, at - end->second.at);
      done += part;
      continue;
    }
    if (end != in_memory_.end()) part = std::min<std::size_t>(part, end->second.at - at);
    const ssize_t got = ::pread(file_, bytes.data() + done, part, static_cast<off_t>(chunk * chunk_bytes + at));
    if (got != static_cast<ssize_t>(part) && !(got < 0 && errno == EINTR)) fail_to_keep(got < 0 ? errno : EIO);
    if (got > 0) done += part;
  }
  return bytes;
}

void ChunkFile::release(Chain& chain) {
  assert(free_.size() + holes_.size() + chain.chunks.size() <= chunks_);
  for (auto chunk = chain.chunks.rbegin(); chunk != chain.chunks.rend(); ++chunk) {
    const auto end = in_memory_.find(*chunk);
    if (end == in_memory_.end()) {
      free_.push_back(*chunk);
      continue;
    }
    memory_bytes_ -= end->second.bytes.size();
    in_memory_.erase(end);
    holes_.push_back(*chunk);
  }
  chain = {};
}

}  // namespace cmt::collector
