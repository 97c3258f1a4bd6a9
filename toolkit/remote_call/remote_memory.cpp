// Reads and writes /proc/PID/mem; pages of code and tables are read once and kept.
#include "toolkit/remote_call/remote_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>

namespace cmt::remote_call {

RemoteMemory::RemoteMemory(int pid) {
  const std::string path = process::path_of(pid, "mem");
  fd_ = process::Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd_.get() < 0) throw std::system_error(errno, std::generic_category(), path);
}

bool RemoteMemory::read(std::uint64_t address, void* to, std::size_t bytes) const {
  char* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t got = ::pread(fd_.get(), at, bytes, static_cast<off_t>(address));
    if (got <= 0) return false;
    at += got;
    address += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::span<const std::uint8_t> RemoteMemory::kept_from(std::uint64_t address) const {
  const std::uint64_t number = address / page_bytes;
  auto page = pages_.find(number);
  if (page == pages_.end()) {
    Page fresh;
    if (!read(number * page_bytes, fresh.data(), fresh.size())) return {};
    page = pages_.emplace(number, fresh).first;
  }
  return std::span(page->second).subspan(address % page_bytes);
}

bool RemoteMemory::read_kept(std::uint64_t address, void* to, std::size_t bytes) const {
  char* at = static_cast<char*>(to);
  while (bytes != 0) {
    const std::span<const std::uint8_t> kept = kept_from(address);
    if (kept.empty()) return false;
    const std::size_t part = std::min(bytes, kept.size());
    assert(part != 0 && part <= page_bytes);
    std::memcpy(at, kept.data(), part);
    at += part;
    address += part;
    bytes -= part;
  }
  return true;
}

std::string RemoteMemory::read_text(std::uint64_t address) const {
  constexpr std::size_t text_bytes_max = 256;
  std::string text;
  for (auto c = read_kept<char>(address); c && *c != 0 && text.size() < text_bytes_max;
       c = read_kept<char>(++address)) {
    text += *c;
  }
  return text;
}

bool RemoteMemory::write(std::uint64_t address, const void* from, std::size_t bytes) const {
  return ::pwrite(fd_.get(), from, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

}  // namespace cmt::remote_call
