// Finds the struct Attach that a process has mapped, and makes the file in memory that a new attach begins with.
#include "cmttrace/attach/attach_file.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

namespace cmt::attach {

static_assert(sizeof(AttachHead) == offsetof(Attach, settings), "one layout");

namespace {

bool is_of_itself(const AttachHead& head, int pid) {
  const std::uint64_t number = own_number(process::path_of(pid, ""));
  return head.process == 0 || number == 0 || head.process == number;
}

}  // namespace

std::uint64_t own_number(const std::string& folder_in_proc) {
  std::ifstream status(folder_in_proc + "/status");
  std::uint64_t number = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(line.find(':') + 1));
    for (std::uint64_t next; numbers >> next;) number = next;  // the innermost is the last
  }
  return number;
}

std::optional<FoundAttach> find_attach(const remote_call::Target& target) {
  for (const process::Mapping& mapping : target.maps()) {
    if (!mapping.shared() || mapping.name != process::attached_memory) continue;
    const auto head = target.memory().read<AttachHead>(mapping.begin);
    if (head && std::memcmp(head->magic, attach_magic, sizeof head->magic) == 0 && is_of_itself(*head, target.pid()))
      return {{mapping.begin, *head}};
  }
  return std::nullopt;
}

AttachFile::AttachFile(int fd, const std::string& library, const std::string& build_id, const std::string& settings,
                       const std::string& program, std::uint64_t thread_word_at) {
  const std::size_t begin = (library.size() + 4095) / 4096 * 4096;
  assert(begin % 4096 == 0 && begin >= library.size());
  process::write_all(fd, library, "memfd");
  if (ftruncate(fd, static_cast<off_t>(begin + attach_bytes)) != 0)
    throw std::system_error(errno, std::generic_category(), "memfd");
  void* const at = mmap(nullptr, attach_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memfd");
  shared_ = static_cast<Attach*>(at);
  std::memcpy(shared_->magic, attach_magic, sizeof shared_->magic);
  std::memcpy(shared_->build_id, build_id.data(), std::min(build_id.size(), sizeof shared_->build_id));
  if (settings.size() >= sizeof shared_->settings) throw std::system_error(E2BIG, std::generic_category(), "settings");
  std::memcpy(shared_->settings, settings.data(), settings.size());
  std::memcpy(shared_->program, program.data(), std::min(program.size(), sizeof shared_->program));
  shared_->thread_word_at = thread_word_at;
}

AttachFile::~AttachFile() { munmap(shared_, attach_bytes); }

std::string AttachFile::message() const {
  return {shared_->message, strnlen(shared_->message, sizeof shared_->message)};
}

void AttachFile::announce_rings_taken() {
  __atomic_store_n(&shared_->rings_taken, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &shared_->rings_taken, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cmt::attach
