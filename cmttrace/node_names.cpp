// Recognises node by names in its file, and then asks it whether it takes the options.
#include "cmttrace/node_names.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "toolkit/launch/spawn.h"
#include "toolkit/process/proc_file.h"

namespace cmt::trace_launcher {
namespace {

/// Whether a file is node, or a small program for its library. Other programs may be called node, too, and are not
/// started to ask them.
bool is_node(const std::string& path) {
  const process::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0 || status.st_size == 0) return false;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto has = [&](std::string_view name) { return memmem(mapped, bytes, name.data(), name.size()) != nullptr; };
  const bool is_found = has("NODE_OPTIONS") || has("libnode.so");
  munmap(mapped, bytes);
  return is_found;
}

/// Whether this node takes the options. It checks NODE_OPTIONS before it prints its version.
bool takes_options(const std::string& path) {
  constexpr unsigned patience_seconds = 5;
  const process::Fd nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
  launch::ChildProcess asked({.words = {path, "--version"},
                              .environment = {{"NODE_OPTIONS", node_name_options}},
                              .input_fd = nowhere.get(),
                              .output_fd = nowhere.get(),
                              .error_fd = nowhere.get(),
                              .has_own_group = true});
  if (!asked.ends_within(patience_seconds)) return false;
  const launch::Ended ended = asked.wait();
  return ended.signal == 0 && ended.status == 0;
}

/// Returns the choice of the last option --perf-basic-prof or --no-perf-basic-prof. Without one, not_wanted means that
/// there is no snapshot either. Words of the command come after NODE_OPTIONS. V8 takes "_" for "-" too, and "--noperf"
/// for "--no-perf".
NodeNames::State chosen_by(const std::string& node_options, const std::vector<std::string>& command) {
  std::string words = node_options;
  for (const std::string& word : command) words += " " + word;
  std::replace(words.begin(), words.end(), '_', '-');
  const std::size_t last = words.rfind("perf-basic-prof");
  const bool has_snapshot = words.find("--snapshot-blob") != words.npos || words.find("--build-snapshot") != words.npos;
  if (last == words.npos) return has_snapshot ? NodeNames::State::snapshot : NodeNames::State::not_wanted;
  const std::string_view before = std::string_view(words).substr(0, last);
  return before.ends_with("--no-") || before.ends_with("--no") ? NodeNames::State::switched_off
                                                               : NodeNames::State::chosen;
}

}  // namespace

NodeNames node_names_of(const Options& options, const std::string& file) {
  if (!options.has_stacks || !options.has_trace || options.keeps) return {};
  using State = NodeNames::State;
  const std::string name = std::filesystem::path(file).filename();
  if (name != "node" && name != "nodejs") return {};
  const auto excludes = [](const auto& variable) {
    return variable.first == "CMTTRACE_SAMPLE_BYTES" ||
           (variable.first == "CMTTRACE_FRAMES" && variable.second == "none");
  };
  if (std::any_of(options.environment.begin(), options.environment.end(), excludes)) return {};
  const char* const inherited = std::getenv("NODE_OPTIONS");
  std::string value = inherited ? inherited : "";
  if (!is_node(file)) return {};
  if (const State own = chosen_by(value, options.command); own != State::not_wanted) return {own};
  if (!takes_options(file)) return {State::refused};
  return {State::added, value + (value.empty() ? "" : " ") + node_name_options};
}

}  // namespace cmt::trace_launcher
