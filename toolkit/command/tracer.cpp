// Whether a program can be recorded follows from what the dynamic loader does with LD_PRELOAD. It ignores the variable
// for a program that runs with another user's rights, and cannot load our 64-bit library into a 32-bit program. A
// program without a PT_INTERP entry (elf(5)) is linked statically: no dynamic loader runs.

#include "toolkit/command/tracer.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace cmt::command {
namespace {

namespace fs = std::filesystem;

/// Why the tracer cannot be loaded into a file that is an ELF program; empty where it can, or it is none.
std::string why_not_loadable(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&file](auto& part) { return bool(file.read(reinterpret_cast<char*>(&part), sizeof part)); };
  Elf64_Ehdr header{};
  if (!read(header.e_ident) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] == ELFCLASS32) return " is a 32-bit program";
  file.seekg(0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || !read(header)) return {};
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read(segment) || segment.p_type == PT_INTERP) return {};
  }
  return " is linked statically";
}

/// The path of libcmttrace.so.
std::string tracer_path() {
  const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* const beside : {"../preload/libcmttrace.so", CMT_TRACER_FROM_BIN}) {
    const fs::path candidate = own / beside;
    if (fs::exists(candidate)) return fs::weakly_canonical(candidate);
  }
  throw std::runtime_error("libcmttrace.so is not where this program was installed");
}

}  // namespace

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
  if (path.empty()) return {};
  const std::string why = changes_rights(path) ? " runs with another user's rights" : why_not_loadable(path);
  return why.empty() ? "" : path + why + ": nothing can be recorded";
}

std::vector<std::pair<std::string, std::string>> tracing_environment(const std::string& output, bool follow) {
  const char* const others = std::getenv("LD_PRELOAD");
  std::vector<std::pair<std::string, std::string>> environment{
      {"LD_PRELOAD", tracer_path() + (others && *others ? std::string(":") + others : "")}, {"CMTTRACE_OUT", output}};
  if (!follow) environment.emplace_back("CMTTRACE_CHILD_OF", std::to_string(getpid()));
  return environment;
}

}  // namespace cmt::command
