// Groups frames by module, looks their addresses up, and stores the names, as name_frames.h describes.

#include "toolkit/symbols/name_frames.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "toolkit/process/smaps.h"
#include "toolkit/symbols/module_file.h"
#include "toolkit/symbols/modules_ahead.h"
#include "toolkit/symbols/perf_map.h"

namespace cmt::symbols {
namespace {

/// A frame that has no names yet, and its address in the module's file.
struct Wanted {
  std::uint64_t address;
  FrameId frame;

  bool operator<(const Wanted& other) const { return address < other.address; }
};
using WantedFrames = std::vector<Wanted>;

/// Whether names contain a function's own name, rather than none or a place.
bool has_function(std::span<const FrameName> names, std::string_view path) {
  return !names.empty() && !names.front().function.empty() && !is_nameless_function(path, names.front().function);
}

/// Counts the frames that have been looked up.
struct FramesDone {
  const std::function<void(double)>& show;
  std::size_t all = 0;
  std::size_t frames = 0;

  void add(std::size_t more) {
    frames += more;
    assert(frames <= all);
    if (show) show(static_cast<double>(frames) / static_cast<double>(all));
  }
};

/// Wanted frames whose addresses are sorted, each address once.
class Lookup {
 public:
  Lookup(StackTable& stacks, std::string_view path, WantedFrames frames, NamingCounts& counts, FramesDone& done)
      : stacks_(stacks), path_(path), frames_(std::move(frames)), counts_(counts), done_(done) {
    std::sort(frames_.begin(), frames_.end());
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      if (i != 0 && frames_[i].address == frames_[i - 1].address) continue;
      addresses_.push_back(frames_[i].address);
      first_.push_back(i);
    }
    first_.push_back(frames_.size());
    assert(first_.size() == addresses_.size() + 1);
    is_named_.resize(addresses_.size());
  }

  std::span<const std::uint64_t> addresses() const { return addresses_; }

  void set_names(std::size_t index, std::span<const FrameName> names) {
    assert(index < addresses_.size() && !names.empty());
    if (!is_named_[index]) done_.add(first_[index + 1] - first_[index]);
    is_named_[index] = true;
    for (std::size_t i = first_[index]; i < first_[index + 1]; ++i) {
      stacks_.set_names(frames_[i].frame, names);
      if (has_function(names, path_)) ++counts_.with_function;
      if (names.front().line != 0) ++counts_.with_line;
    }
  }

  /// Gives all other frames one empty name.
  void finish() {
    const FrameName unknown_name;
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (!is_named_[i]) set_names(i, {&unknown_name, 1});
    }
  }

 private:
  StackTable& stacks_;
  std::string_view path_;  // of the module
  WantedFrames frames_;
  NamingCounts& counts_;
  FramesDone& done_;
  std::vector<std::uint64_t> addresses_;
  std::vector<std::size_t> first_;  // of the frames with each address
  std::vector<bool> is_named_;
};

void name_from_module(Lookup& lookup, const Module& module, const NamingOptions& options) {
  std::unique_ptr<ModuleFile> file = options.ahead == nullptr ? nullptr : options.ahead->take(module);
  if (!file) file = std::make_unique<ModuleFile>(module, options.debug_directories, options.start, options.root);
  std::vector<std::uint64_t> addresses(lookup.addresses().begin(), lookup.addresses().end());
  if (module.end == 0) file->place(addresses);  // the log of another tool did not say where the module was
  std::vector<FrameName> names;
  file->look_up(addresses, [&](std::size_t index, std::vector<SourceFrame>&& frames) {
    names.clear();
    for (const SourceFrame& frame : frames) names.push_back({frame.function, frame.file, frame.line});
    lookup.set_names(index, names);
  });
  lookup.finish();
  const std::string unread = file->unread_debug_info();
  if (!unread.empty() && options.say) options.say(unread);
}

void name_from_perf_map(Lookup& lookup, const NamingOptions& options) {
  if (options.perf_map.empty()) return;
  look_up_in_perf_map(options.perf_map, lookup.addresses(), [&](std::size_t index, std::string_view function) {
    const std::string of_all_tiers = without_tier(function);
    const FrameName name{.function = of_all_tiers, .file = {}};
    lookup.set_names(index, {&name, 1});
  });
}

/// Whether the recorded process is node, as far as its modules show. Debian's has its code in libnode.so.108.
bool is_node(const StackTable& stacks) {
  for (ModuleId id = 1; id < stacks.module_count(); ++id) {
    const std::string_view path = stacks.module(id).path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name == "node" || name == "nodejs" || name.starts_with("libnode.so")) return true;
  }
  return false;
}

/// Whether a function of a JIT compiler has a name, as in a trace that was symbolised while the list was there.
bool names_compiled_functions(const StackTable& stacks) {
  for (FrameId id = 1; id < stacks.frame_count(); ++id) {
    if (stacks.frame(id).module == 0 && has_function(stacks.names(id), "")) return true;
  }
  return false;
}

/// Says so if node's list of its functions is not there, or is not there any more.
void say_if_list_is_missing(const StackTable& stacks, const NamingOptions& options) {
  if (!options.say || options.perf_map.empty() || !is_node(stacks) || names_compiled_functions(stacks)) return;
  if (access(options.perf_map.c_str(), F_OK) == 0 || errno != ENOENT) return;
  options.say("there is no " + options.perf_map + ", node's list of its functions: those of JavaScript are not named");
}

}  // namespace

NamingCounts name_frames(StackTable& stacks, std::span<const FrameId> frames, const NamingOptions& options) {
  NamingCounts counts;
  std::map<std::pair<std::string_view, std::string_view>, std::pair<ModuleId, WantedFrames>> by_file;
  WantedFrames of_no_module;
  for (const FrameId id : frames) {
    const Frame& frame = stacks.frame(id);
    if (id == 0 || has_function(stacks.names(id), stacks.module(frame.module).path)) continue;
    if (stacks.module(frame.module).is_interpreter()) continue;
    if (stacks.module(frame.module).path == process::attached_memory) continue;  // no file has these names any more
    ++counts.frames;
    if (frame.module == 0) {
      of_no_module.push_back({frame.instruction(), id});
      continue;
    }
    const Module& module = stacks.module(frame.module);
    auto& [module_id, wanted] = by_file[{module.path, module.build_id}];
    module_id = frame.module;
    wanted.push_back({frame.instruction() - module.bias, id});
  }
  // A long download from such a server should be seen. libdebuginfod writes a line where this variable is set.
  if (getenv("DEBUGINFOD_URLS") != nullptr && isatty(STDERR_FILENO) == 1) setenv("DEBUGINFOD_PROGRESS", "1", 0);
  FramesDone done{.show = options.show, .all = counts.frames};
  const auto attempt = [&](const std::string& path, const char* whose, WantedFrames&& wanted, auto&& name) {
    const std::size_t done_after = done.frames + wanted.size();
    try {
      Lookup lookup(stacks, path, std::move(wanted), counts, done);
      name(lookup);
    } catch (const std::exception& error) {
      if (options.say) options.say(std::string(error.what()) + "; " + whose + " not named");
    }
    done.add(done_after - done.frames);
  };
  for (auto& [key, value] : by_file) {
    auto& [module_id, wanted] = value;
    const Module& module = stacks.module(module_id);
    attempt(module.path, "its functions are", std::move(wanted),
            [&](Lookup& lookup) { name_from_module(lookup, module, options); });
  }
  if (of_no_module.empty()) return counts;
  attempt("", "functions of a JIT compiler are", std::move(of_no_module),
          [&](Lookup& lookup) { name_from_perf_map(lookup, options); });
  say_if_list_is_missing(stacks, options);
  return counts;
}

NamingCounts name_all_frames(StackTable& stacks, const NamingOptions& options) {
  std::vector<FrameId> frames;
  frames.reserve(stacks.frame_count());
  for (FrameId id = 1; id < stacks.frame_count(); ++id) frames.push_back(id);
  return name_frames(stacks, frames, options);
}

std::optional<std::time_t> start_of(const Header& header) {
  const std::string text(header.find("start").value_or(""));
  std::tm start{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &start) == nullptr) return std::nullopt;
  return timegm(&start);
}

std::string perf_map_of(const Header& header) {
  const std::string_view pid = header.find("pid").value_or("");
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string_view::npos) return {};
  std::string path = "/tmp/perf-" + std::string(pid) + ".map";
  struct stat status;
  const std::optional<std::time_t> start = start_of(header);
  const bool is_older = start && stat(path.c_str(), &status) == 0 && status.st_mtime < *start;
  return is_older ? "" : path;
}

}  // namespace cmt::symbols
