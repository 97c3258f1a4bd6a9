/// Files and pipes as the readers and writers of traces use them, and the locks by which a collector and its readers
/// know of each other.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <cassert>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cmt {

// A collector marks the trace that it writes by locks (F_OFD_SETLK of fcntl(2)) on bytes far beyond the end of the
// file. Readers do the same. A lock belongs to an open file description, so it ends with the process, however the
// process ends.

/// A collector locks this byte as long as it has the file open.
inline constexpr long long recorder_at_work = 1LL << 61;
/// A collector locks this byte while a reader should wait, because the traced program has ended or has just begun. The
/// trace of a running program can be read as far as it goes.
inline constexpr long long recorder_is_awaited = (1LL << 61) + 1;
/// Readers share a lock of this byte. While there are readers, a collector encodes without waiting for an idle
/// processor. (inotify would report all readers, but a user may have 128 instances, which collectors could use up.)
inline constexpr long long reader_at_work = (1LL << 61) + 2;

/// The lock of such bytes, for fcntl(2). `type`: F_RDLCK, F_WRLCK or F_UNLCK.
inline struct flock lock_of(short type, long long first, long long count = 1) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  return lock;
}

/// Makes readers wait until the file is closed.
inline void lock_against_readers(int fd) {
  struct flock both = lock_of(F_WRLCK, recorder_at_work, recorder_is_awaited + 1 - recorder_at_work);
  ::fcntl(fd, F_OFD_SETLK, &both);
}

/// Whether a collector has the file open.
inline bool has_recorder(int fd) {
  struct flock lock = lock_of(F_RDLCK, recorder_at_work);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// A launcher's status file (toolkit/launch/trace_status.h) has a name of so many digits, in a folder whose name begins
/// so. The collector removes such a file if the launcher was killed.
inline constexpr std::string_view status_folder_begin = "cmttrace.";
inline constexpr std::size_t status_name_digits = 32;

/// The names of a collector's process and of its supervisor's (preload/program/collector_start.h), in the form of
/// /proc.
inline constexpr std::string_view collector_name = "cmttrace-collec", supervisor_name = "cmttrace-superv";

/// A source of an Input's bytes other than a file descriptor: a decompressor.
class Bytes {
 public:
  virtual ~Bytes() = default;

  /// Reads up to `room` bytes. Returns how many; 0 only at the end.
  virtual std::size_t read(char* to, std::size_t room) = 0;

  /// A message that names the missing part if the bytes end too early; empty if they are complete. Known at the end.
  virtual std::string missing() const = 0;

  /// The bytes read from the file so far, and its size (0: not known), for a progress display.
  virtual std::uint64_t taken() const = 0;
  virtual std::uint64_t size() const = 0;
};

/// Reads a file or a pipe through one growing window. Throws std::system_error.
class Input {
 public:
  /// Takes over `fd`.
  Input(int fd, std::string name);
  Input(std::unique_ptr<Bytes> bytes, std::string name);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// The next bytes: at least `count`, or all bytes that are left. Valid until the next call.
  std::string_view peek(std::size_t count);

  /// Skips bytes of the last peek().
  void skip(std::size_t count) {
    assert(count <= end_ - begin_);
    begin_ += count;
  }

  /// Offset of the next byte.
  std::uint64_t offset() const { return window_offset_ + begin_; }

  /// The size of the input in bytes; 0 if it is not known (a pipe).
  std::uint64_t size() const { return size_; }

  bool can_seek() const { return can_seek_; }

  /// The bytes read from the file so far, and its size if that is known, compressed or not.
  std::uint64_t file_taken() const { return bytes_ ? bytes_->taken() : offset(); }
  std::uint64_t file_size() const { return bytes_ ? bytes_->size() : size_; }

  /// A message that names the missing part of a compressed input; empty if it is complete. Known at its end.
  std::string missing() const { return bytes_ ? bytes_->missing() : std::string(); }

  /// Reads up to `count` bytes from `offset`, and leaves the window where it is. Only if can_seek().
  std::string at(std::uint64_t offset, std::size_t count) const;

  /// Moves the window to `offset`. Only if can_seek().
  void go_to(std::uint64_t offset);

  const std::string& name() const { return name_; }

  /// "app.cmt: offset 0x1f3", for messages.
  std::string place(std::uint64_t offset) const;

 private:
  bool fill();
  std::size_t read_some(char* to, std::size_t room);

  int fd_ = -1;
  std::unique_ptr<Bytes> bytes_;
  std::string name_;
  bool can_seek_ = false;
  bool at_end_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t window_offset_ = 0;  // of window_[0]
  std::vector<char> window_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Opens a path for reading; "-" is standard input. Throws std::system_error that names the path.
int open_input(const std::string& path);

/// Writes to a file or a pipe. Borrows the descriptor. Throws std::system_error.
class Output {
 public:
  /// Messages begin with `doing`.
  explicit Output(int fd, const char* doing = "writing") : fd_(fd), doing_(doing) {}

  void write(std::string_view bytes);

  /// Copies a descriptor to its end, or `bytes_max` bytes of it. Returns the number of bytes. `name` names the
  /// descriptor in messages.
  std::uint64_t copy_from(int fd, const std::string& name,
                          std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());

  /// The bytes written so far. Any thread may call it.
  std::uint64_t offset() const { return offset_; }

 private:
  int fd_;
  const char* doing_;
  std::atomic<std::uint64_t> offset_ = 0;
};

/// The folder of temporary files: $TMPDIR if it is set. Else it is /var/tmp, since /tmp may be in memory, and /tmp if
/// there is no /var/tmp, as in small images of containers.
std::string temporary_folder();

/// Opens a file without a name in a folder, which disappears when it is closed. Returns -1, with errno, if it cannot.
int open_nameless_file(const std::string& folder);

/// Opens such a file in the folder of temporary files. Throws std::system_error.
int open_temporary_file();

}  // namespace cmt
