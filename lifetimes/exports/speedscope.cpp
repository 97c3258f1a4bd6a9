// Writes a file of speedscope. The shortest such file is:
//
//     {"$schema": "https://www.speedscope.app/file-format-schema.json",
//      "shared": {"frames": [{"name": "main", "file": "app.cpp"}, {"name": "parse"}]},
//      "profiles": [{"type": "sampled", "name": "allocated", "unit": "bytes", "startValue": 0, "endValue": 48,
//                    "samples": [[0], [0, 1]], "weights": [16, 32]}]}
//
// Samples name frames by their place in the list. Two samples of the same weight are drawn as long as each other, in
// the order of the file.

#include "lifetimes/exports/speedscope.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <vector>

#include "analysis/stacks/function_tree.h"
#include "analysis/stacks/stack_tree.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/json.h"

namespace cmt::lifetimes {

using namespace analysis;

namespace {

struct Measure {
  Metric metric;
  std::string_view name;
  std::string_view unit;  ///< as speedscope has them
};
constexpr std::array<Measure, 5> measures{{{Metric::peak, "live at the peak", "bytes"},
                                           {Metric::bytes, "allocated", "bytes"},
                                           {Metric::live, "live at the end", "bytes"},
                                           {Metric::blocks, "blocks allocated", "none"},
                                           {Metric::temporary, "temporary blocks", "none"}}};

/// Returns the source file of each function, or else its library, by label.
std::vector<std::string> files_of(const StackTable& stacks, const Uses& uses, const std::string& hidden,
                                  Labels& labels) {
  NamePattern pattern(hidden);
  std::vector<std::string> files(labels.count());
  for (const FrameId frame : StackTree(stacks, uses).frames()) {
    const std::span<const Label> found = labels.of_frame(frame);
    auto label = found.begin();
    for (const FrameName& each : stacks.names(frame)) {
      if (pattern.matches_function(each.function)) continue;  // has no label
      std::string& file = files[index_of((label++)->text)];
      if (file.empty()) file = each.file.empty() ? library_text(stacks, frame) : std::string(each.file);
    }
    for (; label != found.end(); ++label)
      files[index_of(label->text)] = library_text(stacks, frame);  // a frame without names
  }
  return files;
}

class SpeedscopeWriter {
 public:
  explicit SpeedscopeWriter(const std::function<void(std::string_view)>& write) : write_(write) {}

  void put_head(const std::string& name) {
    json_.begin_object();
    json_.field("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.field("name", text::to_line(name));
    json_.field("exporter", "cmt lifetimes " CMT_VERSION);
    json_.field("activeProfileIndex", 0);
  }
  void put_frames(const Labels& labels, const std::vector<std::string>& files) {
    json_.begin_object("shared");
    json_.begin_array("frames");
    for (std::uint32_t i = 0; i < labels.count(); ++i) {
      json_.begin_object();
      json_.field("name", text::to_line(labels.text(LabelId{i})));
      if (!files[i].empty()) json_.field("file", text::to_line(files[i]));
      json_.end_object();
      write_if_full();
    }
    json_.end_array();
    json_.end_object();
  }
  void put_profiles(const FunctionTree& functions, const Uses& uses) {
    json_.begin_array("profiles");
    const bool is_sampled = !uses.entries.empty() && uses.entries.front().use.sampled != nullptr;
    for (const Measure& measure : measures) {
      if (is_sampled && measure.metric == Metric::temporary) continue;  // not known
      put_profile(functions, functions.figures(uses, measure.metric), measure);
    }
    json_.end_array();
    json_.end_object();
    write_(json_.take());
  }

 private:
  void put_profile(const FunctionTree& functions, const std::vector<std::int64_t>& figures, const Measure& measure) {
    json_.begin_object();
    json_.field("type", "sampled");
    json_.field("name", measure.name);
    json_.field("unit", measure.unit);
    json_.field("startValue", 0);
    json_.field("endValue", std::accumulate(figures.begin(), figures.end(), std::int64_t{0}));
    std::vector<LabelId> path;
    std::vector<std::int64_t> weights;
    const auto enter = [&](FunctionTree::NodeId node) {
      path.push_back(functions.label(node));
      if (figures[node] == 0) return;
      weights.push_back(figures[node]);
      json_.begin_array();
      for (const LabelId label : path) json_.value(index_of(label));
      json_.end_array();
      write_if_full();
    };
    json_.begin_array("samples");
    functions.walk(enter, [&](FunctionTree::NodeId) { path.pop_back(); });
    assert(path.empty());
    json_.end_array();
    json_.begin_array("weights");
    for (const std::int64_t weight : weights) {
      json_.value(weight);
      write_if_full();
    }
    json_.end_array();
    json_.end_object();
  }

  void write_if_full() {
    constexpr std::size_t enough = std::size_t{64} * 1024;
    if (json_.size() >= enough) write_(json_.drain());
  }

  const std::function<void(std::string_view)>& write_;
  output::JsonWriter json_;
};

}  // namespace

void write_speedscope(const StackTable& stacks, const Uses& uses, const std::string& hidden, const std::string& name,
                      const std::function<void(std::string_view)>& write) {
  Labels labels(stacks, Key::function, {}, hidden);
  const FunctionTree functions(stacks, uses, labels);
  SpeedscopeWriter writer(write);
  writer.put_head(name);
  writer.put_frames(labels, files_of(stacks, uses, hidden, labels));
  writer.put_profiles(functions, uses);
}

}  // namespace cmt::lifetimes
