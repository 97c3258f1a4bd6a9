/// Which files are traces of a recording, and how they are opened.
///
/// A launcher learns of traces by lines that recorded processes append to a file. A process of another user, or a
/// hostile program, may append lines too. Example: a line of user `nobody` names /etc/shadow, and root's cmttrace opens
/// it. So a path in a line is opened only if the launcher's own -o leads to it. The file must also be regular, have one
/// name, belong to this user, and begin as a trace.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cmt::launch {

/// The paths that a template of CMTTRACE_OUT leads to.
class TracePaths {
 public:
  /// `output`: the first path of the list counts. Relative paths are those of the current folder.
  explicit TracePaths(std::string_view output);

  /// Returns `stated` if the tracer would make it of the template for process `pid`: with %p and %n filled in, and
  /// numbers before the ending. A path with control characters is none.
  std::optional<std::string> find(std::string_view stated, int pid) const;
  /// The same for a file that a flight recorder has written: app.kept.1.cmt.
  std::optional<std::string> find_kept(std::string_view stated, int pid) const;

 private:
  std::string template_;
};

/// Whether a path has control characters. Processes report the names of their traces in lines of text, so such a path
/// is found in none.
bool has_controls(std::string_view path);

/// Makes templates of CMTTRACE_OUT and its kin absolute. A per cent sign in the current folder is doubled.
std::string absolute_templates(std::string_view list);
std::string absolute_template(std::string_view path);

/// The owner of a trace's file.
enum class TraceOwner { us, other, no_trace };
/// no_trace: there is no regular file with one name at this path; a symbolic link is none.
TraceOwner owner_of_trace(const std::string& path);

/// Opens a trace of ours to read it. The descriptor is the caller's. Throws std::runtime_error for a file of another
/// user, one with several names, one that is not regular, and one that does not begin as a trace.
int open_own_trace(const std::string& path);

/// Whether a collector holds the lock of a trace's file, and so may still write to it.
bool is_written(const std::string& path);

}  // namespace cmt::launch
