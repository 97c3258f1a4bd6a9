// Turns the variables of libcmttrace(1) into the text that struct Attach holds, and checks that children can use them.
#include "cmttrace/attach/recording/library_settings.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "toolkit/process/proc_file.h"

namespace cmt::attach {
namespace {

namespace fs = std::filesystem;

/// The value of CMTTRACE_OUT_OF: no process has this number, so that no child's trace gets the name of the process's
/// own.
constexpr const char* no_launcher = "4294967295";

/// The same for a process in another folder.
std::string absolute_template(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::string folder;
  for (const char c : fs::current_path().string()) folder += c == '%' ? "%%" : std::string(1, c);
  return folder + "/" + path;
}

std::string absolute_templates(const std::string& list) {
  std::string result;
  std::istringstream paths(list);
  for (std::string path; std::getline(paths, path, ',');) {
    if (!path.empty()) result += (result.empty() ? "" : ",") + absolute_template(path);
  }
  return result;
}

/// Whether a process sees the same file by a path as we do.
bool sees(const remote_call::Target& target, const std::string& path) {
  struct stat ours {
  }, theirs{};
  const std::string there = process::path_of(target.pid(), "root") + fs::absolute(path).string();
  return stat(path.c_str(), &ours) == 0 && stat(there.c_str(), &theirs) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

}  // namespace

std::string settings_for_library(const Settings& settings, const ChildRecording* children) {
  static const std::set<std::string> for_library{"CMTTRACE_TIME",   "CMTTRACE_STAMPS",       "CMTTRACE_USABLE",
                                                 "CMTTRACE_STACKS", "CMTTRACE_STACK_FRAMES", "CMTTRACE_STACKS_OF_FREES",
                                                 "CMTTRACE_FRAMES", "CMTTRACE_POOL",         "CMTTRACE_TOUCHED",
                                                 "CMTTRACE_START",  "CMTTRACE_ON_FULL",      "CMTTRACE_SAMPLE_BYTES"};
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) { text += name + "=" + value + '\0'; };
  for (const auto& [name, value] : settings) {
    if (for_library.contains(name) || children != nullptr)
      add(name, name == "CMTTRACE_CONTROL" || name == "CMTTRACE_PPROF" ? absolute_template(value) : value);
  }
  if (children == nullptr) return text;
  add("CMTTRACE_FOLLOW", "1");
  add("CMTTRACE_OUT", absolute_templates(children->templates));
  add("CMTTRACE_OUT_OF", no_launcher);
  add("CMTTRACE_COLLECTOR", children->collector);
  if (!children->status_path.empty()) add("CMTTRACE_STATUS", "-" + children->status_path);
  return text;
}

void check_children(const remote_call::Target& target, const ChildRecording& children) {
  std::istringstream paths(absolute_templates(children.templates));
  std::vector<std::string> needed{children.collector};
  for (std::string path; std::getline(paths, path, ',');) needed.push_back(fs::path(path).parent_path());
  for (const std::string& path : needed) {
    if (path.find('%') != path.npos || sees(target, path)) continue;
    throw remote_call::Refused("process " + target.called() +
                               " cannot be attached to with its children: it does not see " + path +
                               ", as they would have to (another mount namespace?)");
  }
}

bool records_touched_pages(const remote_call::Target& target, const Settings& settings) {
  for (const auto& [name, value] : settings) {
    if (name == "CMTTRACE_TOUCHED" && !value.empty()) return value != "off" && value != "0";
  }
  const std::string status = process::read_file(process::path_of(target.pid(), "status"));
  return process::find_figure(status, "Seccomp").value_or(0) == 0;
}

}  // namespace cmt::attach
