/// The memory that cmttrace and an attached process share: struct Attach (preload/attach.h), with the library in front
/// of it.
#pragma once

#include <optional>
#include <string>

#include "preload/attach.h"
#include "toolkit/remote_call/target.h"

namespace cmt::attach {

/// The part of struct Attach before the settings: what changes.
struct AttachHead {
  char magic[8];
  char build_id[40];
  std::uint32_t rings_taken;
  std::uint32_t state;
  std::int32_t rings_fd;
  std::uint32_t words;
  std::uint64_t process;
  char message[attach_message_bytes];
};

/// The struct Attach that a process has mapped: its address and its contents.
struct FoundAttach {
  std::uint64_t address = 0;
  AttachHead head{};
};

/// Returns the number by which a process or a thread knows itself, in its own namespace; 0 if it is not known.
std::uint64_t own_number(const std::string& folder_in_proc);

/// Returns nullopt if no attach is under way in the process itself: a forked child has its parent's struct mapped too.
std::optional<FoundAttach> find_attach(const remote_call::Target& target);

/// A file in memory of the target with the library and a struct Attach, mapped here.
class AttachFile {
 public:
  /// Writes both to a file of the target. `library` may be empty: a stub is there. Throws std::system_error.
  /// `program` and `thread_word_at`: struct Attach has them.
  AttachFile(int fd, const std::string& library, const std::string& build_id, const std::string& settings,
             const std::string& program, std::uint64_t thread_word_at);
  ~AttachFile();
  AttachFile(const AttachFile&) = delete;
  AttachFile& operator=(const AttachFile&) = delete;

  std::uint32_t state() const { return __atomic_load_n(&shared_->state, __ATOMIC_ACQUIRE); }
  /// The descriptor of the rings in the target; valid in the state attach_has_rings.
  int rings_descriptor() const { return shared_->rings_fd; }
  std::uint32_t words() const { return shared_->words; }
  std::string message() const;
  void announce_rings_taken();

 private:
  Attach* shared_ = nullptr;
};

}  // namespace cmt::attach
