// Whether a program can be recorded depends on the dynamic loader and LD_PRELOAD:
//
//   another user's rights     the loader ignores the variable
//   32 bits                   the loader cannot load our 64-bit library
//   no PT_INTERP (elf(5))     the program is linked statically: no loader runs
//   gcc's address sanitizer   ends a program if another library is loaded before its own

#include "toolkit/launch/tracer.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "toolkit/launch/program_file.h"
#include "toolkit/process/proc_mount.h"

namespace cmt::launch {
namespace {

namespace fs = std::filesystem;

/// Why nothing of a program can be recorded.
struct Obstacle {
  std::string_view keyword;   ///< by which libcmttrace reports it (preload/program/launch/execs.h)
  std::string_view reason;    ///< in a list of programs
  std::string_view sentence;  ///< after the program's path
};
constexpr std::array<Obstacle, 7> obstacles{{
    {"bits", "a 32-bit program", " is a 32-bit program: nothing can be recorded; build it for 64 bits"},
    {"processor", "for another processor", " is for another processor: nothing can be recorded"},
    {"static", "linked statically", " is linked statically: nothing can be recorded; link it without -static"},
    {"sanitizer", "a sanitizer",
     " is built with a sanitizer, whose malloc hides the tracer: nothing can be recorded; build it without "
     "-fsanitize="},
    {"rights", "other rights", " runs with another user's rights: nothing can be recorded, unless that user runs it"},
    {"environment", "started without LD_PRELOAD", ""},
    {"library", "its root folder has no libcmttrace.so", ""},
}};

/// Empty fields: there is no such obstacle.
Obstacle obstacle_named(std::string_view keyword) {
  const auto* const found = std::find_if(obstacles.begin(), obstacles.end(),
                                         [&](const Obstacle& obstacle) { return obstacle.keyword == keyword; });
  return found != obstacles.end() ? *found : Obstacle{};
}

/// The keyword. Empty: there is none.
std::string_view obstacle_in(const ProgramFile& program) {
  if (!program.is_elf) return {};
  if (!program.is_64_bit) return "bits";
  if (!program.is_for_us) return "processor";
  if (program.interpreter.empty()) return "static";
  return program.sanitizer.empty() ? "" : "sanitizer";
}

/// A dynamic loader may be called with a program: it loads the tracer.
bool is_loader(const std::string& path) {
  const std::string name = fs::path(path).filename();
  return (name.starts_with("ld-linux") || name.starts_with("ld-musl")) && read_program_file(path).is_for_us;
}

/// Why the tracer does not see the calls of an ELF program, and what can be done. Empty if the tracer sees them, or the
/// file is no ELF program.
std::string why_not_seen(const ProgramFile& program) {
  if (const Obstacle obstacle = obstacle_named(obstacle_in(program)); !obstacle.keyword.empty())
    return std::string(obstacle.sentence) + (obstacle.keyword == "sanitizer" ? program.sanitizer : "");
  if (program.exports_malloc) {
    return " has a malloc of its own, which is recorded only if it calls the next malloc; if it does not, link its "
           "allocator as a shared library";
  }
  if (program.allocator.empty()) return {};
  return " has an allocator inside (" + program.allocator +
         "): only what it asks of the C library is recorded; build it without";
}

}  // namespace

std::string tracer_path() {
  const fs::path own = process::own_program().parent_path();
  // An installed program must not load what is in /usr/preload: only a build folder has this cache.
  const bool is_built = fs::exists(own / "../CMakeCache.txt");
  const fs::path candidate = own / (is_built ? "../preload/libcmttrace.so" : CMT_TRACER_FROM_BIN);
  if (fs::exists(candidate)) return fs::weakly_canonical(candidate);
  throw std::runtime_error("libcmttrace.so is not where this program was installed");
}

std::string with_pools_library(const std::string& preload) {
  const std::string tracer = tracer_path();
  const fs::path pools = fs::path(tracer).replace_filename("libcmttrace-pools.so");
  if (!fs::exists(pools)) throw std::runtime_error("libcmttrace-pools.so is not beside libcmttrace.so");
  return tracer + ":" + pools.string() + preload.substr(tracer.size());
}

std::string find_in_path(const std::string& word) {
  if (word.find('/') != word.npos) return word;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + word;
    if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
  }
  return {};
}

std::string collector_path() {
  if (const char* const given = std::getenv("CMTTRACE_COLLECTOR")) return given;
  const fs::path folder = fs::path(tracer_path()).parent_path();
  for (const char* const beside : {"", "../libexec/cmt", "../../libexec/cmt"}) {
    const fs::path candidate = folder / beside / "cmttrace-collector";
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw std::runtime_error("cmttrace-collector is not beside libcmttrace.so");
}

std::string tool_path(const std::string& name) {
  const fs::path own = process::own_program().parent_path();
  for (const fs::path& candidate : {own / name, own / ".." / name / name}) {
    if (fs::is_regular_file(candidate) && access(candidate.c_str(), X_OK) == 0) return fs::weakly_canonical(candidate);
  }
  throw std::runtime_error(name + " is not where this program was installed");
}

bool changes_rights(const std::string& word) {
  const std::string path = find_in_path(word);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  const bool has_capabilities = getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return ((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
         ((status.st_mode & S_ISGID) && status.st_gid != getgid()) || has_capabilities;
}

std::string why_not_recordable(const std::string& word) {
  const std::string path = find_in_path(word);
  if (path.empty() || is_loader(path)) return {};
  const std::string why =
      changes_rights(path) ? std::string(obstacle_named("rights").sentence) : why_not_seen(read_program_file(path));
  return why.empty() ? "" : path + why;
}

std::string_view reason_of_obstacle(std::string_view keyword) { return obstacle_named(keyword).reason; }

std::string_view obstacle_of(const std::string& word) {
  const std::string path = find_in_path(word);
  if (path.empty() || is_loader(path)) return {};
  return reason_of_obstacle(changes_rights(path) ? "rights" : obstacle_in(read_program_file(path)));
}

bool is_broken_by_tracer(const std::string& word) { return !read_program_file(find_in_path(word)).sanitizer.empty(); }

std::vector<std::pair<std::string, std::string>> tracing_environment(const std::string& output, bool follow) {
  const char* const others = std::getenv("LD_PRELOAD");
  std::vector<std::pair<std::string, std::string>> environment{
      {"LD_PRELOAD", tracer_path() + (others && *others ? std::string(":") + others : "")}, {"CMTTRACE_OUT", output}};
  if (!follow) environment.emplace_back("CMTTRACE_CHILD_OF", std::to_string(getpid()));
  return environment;
}

}  // namespace cmt::launch
