/// The files of an attached process's trace. cmttrace creates them, because the process may see other files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "preload/protocol.h"
#include "toolkit/process/proc_file.h"

namespace cmt::attach {

/// The files of a trace, which cmttrace makes for a process that it attaches to: the process itself may be in another
/// mount namespace. They are locked, as libcmttrace locks them, and removed with this object unless keep() was called.
class TraceFiles {
 public:
  /// `templates`: paths as in CMTTRACE_OUT, with commas between them; empty: only profiles are written. In them, %n
  /// becomes the program's name, %p its process id. A name without these replaces an existing file. `fifo`: a FIFO for
  /// commands to make; empty: none. `profile`: the same of the profiles, which the collector writes. Throws
  /// std::system_error.
  TraceFiles(const std::string& templates, const std::string& fifo, const std::string& profile,
             const std::string& program, int pid);
  ~TraceFiles();
  TraceFiles(const TraceFiles&) = delete;
  TraceFiles& operator=(const TraceFiles&) = delete;

  /// Writes the paths to where the collector reads them.
  void describe(Control& control) const;

  const std::vector<process::Fd>& descriptors() const { return descriptors_; }
  const std::string& first_path() const { return paths_.empty() ? profile_ : paths_.front(); }
  void keep() { is_kept_ = true; }

 private:
  void create(const std::string& path_template, const std::string& program, int pid);
  void create_fifo(const std::string& path);

  std::vector<std::string> paths_;  ///< absolute
  std::vector<process::Fd> descriptors_;
  std::string fifo_, profile_;
  bool has_made_fifo_ = false, is_kept_ = false;
};

/// Copies a text into a field of Control, as much as fits.
template <std::size_t bytes>
void copy_text(char (&to)[bytes], const std::string& text) {
  const std::size_t length = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

/// The name by which a process's program was started, or that of its file if this is not known; and its command line.
std::string program_of(int pid);
std::string command_of(int pid);

}  // namespace cmt::attach
