// Follows the blocks of a trace to its end, and names the calls that made those that are left. A call site is that of
// the innermost function that does not only hand memory on, as in lifetimes --by.
#include "cmtwatch/explain/sites/trace_sites.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/places/mmap_threshold.h"
#include "analysis/stacks/function_names/python_frames.h"
#include "analysis/stacks/labels.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/native_frames.h"
#include "analysis/stacks/stack_tree.h"
#include "cmt/error.h"
#include "libcmt/text/utf8.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::watch::explain {
namespace {

struct StacksToName {
  struct Entry {
    StackId key;
  };
  std::vector<Entry> entries{};
};

class SitesReader {
 public:
  explicit SitesReader(const std::string& path)
      : options_{.tool = "cmtwatch", .path = path}, trace_(options_, true, true) {
    sites_.path = path;
    sites_.pid = text::to_line(trace_.header().find("pid").value_or(""));
  }

  BlockSites read() {
    trace_.for_each([this](const Event& event) { follow(event); });
    // A trace that is being written may have no header yet.
    if (events_ != 0) analysis::require_stacks(trace_.stacks(), trace_.header(), options_.path);
    if (lacks_addresses_) throw FormatError(options_.path, "addresses were not recorded: its blocks cannot be found");
    name_sites();
    return std::move(sites_);
  }

 private:
  void follow(const Event& event) {
    ++events_;
    if (event.ends_block()) end_block(event);
    if (!event.makes_block()) return;
    if (event.address == 0) {
      lacks_addresses_ = true;
      return;
    }
    const TracedBlock block{event.address, event.bytes(), event.stack, static_cast<std::uint32_t>(event.alignment)};
    if (!sites_.blocks.insert(block)) *sites_.blocks.find(event.address) = block;
  }

  // A realloc that moves a block leaves malloc's threshold alone.
  void end_block(const Event& event) {
    const auto ended = sites_.blocks.erase(event.old_address);
    if (!ended || event.makes_block() || !analysis::begins_mapping(ended->address, ended->alignment)) return;
    const std::uint64_t mapping = analysis::mapping_of_request(ended->size, ended->alignment);
    if (mapping <= analysis::mmap_threshold_first || mapping > analysis::mmap_threshold_max) return;
    sites_.freed.try_emplace(mapping, FreedMapping{ended->size, events_, event.time_ns, ended->stack});
  }

  void name_sites() {
    StacksToName used;
    sites_.blocks.for_each([&](const TracedBlock& block) { used.entries.push_back({block.stack}); });
    for (const auto& [bytes, freed] : sites_.freed) used.entries.push_back({freed.stack});
    const StackTable& stacks = trace_.stacks();
    const analysis::ShownStacks shown =
        analysis::show_stacks(analysis::named_stacks(stacks, analysis::StackTree(stacks, used).frames(),
                                                     trace_.header(), {.tool = options_.tool}),
                              stacks.nodes(), analysis::NativeFrames::fold, analysis::Key::line);
    analysis::AllocationFunctions allocation(shown.charges({}));
    sites_.by_stack.resize(stacks.node_count(), BlockSites::not_known);
    std::unordered_map<std::string, SiteId> ids;
    for (const StacksToName::Entry& entry : used.entries) {
      SiteId& site = sites_.by_stack[entry.key];
      if (entry.key == 0 || site != BlockSites::not_known) continue;
      const std::string name = text::to_line(site_name(shown.stacks, shown.of(entry.key), allocation));
      const auto [known, is_new] = ids.try_emplace(name, static_cast<SiteId>(sites_.names.size()));
      if (is_new) sites_.names.push_back(name);
      site = known->second;
    }
  }

  static std::string site_name(const StackTable& stacks, StackId stack, analysis::AllocationFunctions& allocation) {
    std::string site;
    for (StackId at = stack; at != 0; at = stacks.node(at).parent) {
      const FrameId frame = stacks.node(at).frame;
      if (stacks.names(frame).empty()) {
        site = analysis::function_text(stacks, frame, nullptr);
        if (!allocation.has(stacks, frame, {})) return site;
      }
      for (const FrameName& name : stacks.names(frame)) {
        site = name_with_line(stacks, frame, name);
        if (!allocation.has(stacks, frame, name)) return site;
      }
    }
    return site;
  }

  static std::string name_with_line(const StackTable& stacks, FrameId frame, const FrameName& name) {
    if (analysis::is_python(stacks, frame)) return analysis::python_function(name, true);
    const std::string function = analysis::function_text(stacks, frame, &name);
    const std::string_view file = name.file.substr(name.file.rfind('/') + 1);
    return name.line == 0 ? function : function + " (" + std::string(file) + ":" + std::to_string(name.line) + ")";
  }

  const trace::Options options_;
  trace::Trace trace_;
  BlockSites sites_;
  std::uint64_t events_ = 0;
  bool lacks_addresses_ = false;
};

}  // namespace

BlockSites read_block_sites(const std::string& path) { return SitesReader(path).read(); }

}  // namespace cmt::watch::explain
