#include "cmtreplay/plan/spool.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "cmtreplay/protocol.h"
#include "libcmt/trace/files.h"

namespace cmt::replay {
namespace {

constexpr std::uint64_t spooled_bytes = chunk_words * sizeof(std::uint64_t);

off_t offset_of(std::uint32_t chunk) { return static_cast<off_t>(chunk * spooled_bytes); }

[[noreturn]] void fail_in_spool(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string(what) + " operations in " + temporary_folder());
}

}  // namespace

Spool::Spool() : file_(open_temporary_file()) {}

void Spool::write(std::uint32_t chunk, const std::uint64_t* words) {
  const char* const bytes = reinterpret_cast<const char*>(words);
  for (std::uint64_t done = 0; done < spooled_bytes;) {
    const ssize_t count =
        pwrite(file_.get(), bytes + done, spooled_bytes - done, offset_of(chunk) + static_cast<off_t>(done));
    if (count < 0 && errno != EINTR) fail_in_spool("writing");
    if (count > 0) done += static_cast<std::uint64_t>(count);
  }
}

void Spool::read(std::uint32_t chunk, std::uint64_t* words) const {
  char* const bytes = reinterpret_cast<char*>(words);
  std::uint64_t done = 0;
  while (done < spooled_bytes) {
    const ssize_t count =
        pread(file_.get(), bytes + done, spooled_bytes - done, offset_of(chunk) + static_cast<off_t>(done));
    if (count < 0 && errno != EINTR) fail_in_spool("reading");
    if (count == 0) break;
    if (count > 0) done += static_cast<std::uint64_t>(count);
  }
  std::memset(bytes + done, 0, spooled_bytes - done);
}

}  // namespace cmt::replay
