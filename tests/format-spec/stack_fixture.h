/// Random call stacks, for the tests of stacks in a .cmt.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/format-spec/trace_fixture.h"

namespace cmt::fixture {

/// A table that grows as a program's does: modules are loaded, some are unloaded, and paths share their outer frames.
class RandomStacks {
 public:
  explicit RandomStacks(unsigned seed) : random_(seed) {}

  const StackTable& table() const { return table_; }

  /// A stack, which may be new; sometimes 0.
  StackId next() {
    if (below(10) == 0) return 0;
    if (known_.size() > 1 && below(3) != 0) return known_[below(known_.size())];
    StackId at = known_.empty() || below(5) == 0 ? 0 : known_[below(known_.size())];
    for (unsigned up = below(4); up != 0 && at != 0; --up) at = table_.node(at).parent;
    if (at == 0 && below(4) == 0) at = table_.add_node({0, 0});  // a cut one
    for (unsigned more = 1 + below(5); more != 0; --more) at = table_.add_node({at, frame()});
    known_.push_back(at);
    return at;
  }

 private:
  unsigned below(std::uint64_t limit) { return static_cast<unsigned>(random_() % limit); }

  FrameId frame() {
    const ModuleId module = below(20) == 0 ? 0 : this->module();
    return table_.add_frame({module, table_.module(module).begin + 1 + below(300), below(9) == 0});
  }

  ModuleId module() {
    if (table_.module_count() > 1 && below(30) != 0) return 1 + below(table_.module_count() - 1);
    const std::uint64_t begin = random_() >> 20;
    const std::uint64_t now = below(3) != 0 ? random_() >> 40 : unknown;
    const ModuleId module = table_.add_module({.path = "/lib/lib" + std::to_string(below(9)) + " x.so",
                                               .build_id = std::string(below(3) * 10u, static_cast<char>(below(256))),
                                               .begin = begin,
                                               .end = begin + 4096 * below(100),
                                               .bias = begin - (below(2) != 0 ? 0x400000 : 0),
                                               .loaded_ns = now});
    if (module > 1 && below(2) != 0) table_.set_unloaded(module - 1, random_() >> 30);
    return module;
  }

  std::mt19937_64 random_;
  StackTable table_;
  std::vector<StackId> known_;
};

/// A stack as text, for a comparison: all frames with their modules, innermost first, or "?" if it is unknown. Leaves
/// out when a module was unloaded, which is known only at the end of the trace.
inline std::string stack_text(const StackTable& stacks, StackId id) {
  if (id == 0) return "?";
  std::string text;
  for (StackId at = id; at != 0; at = stacks.node(at).parent) {
    const Frame& frame = stacks.frame(stacks.node(at).frame);
    const Module& module = stacks.module(frame.module);
    text += module.path + "/" + module.build_id + "/" + std::to_string(module.begin) + "-" +
            std::to_string(module.end) + "-" + std::to_string(module.bias) + "@" + std::to_string(module.loaded_ns) +
            "+" + std::to_string(frame.address) + (frame.is_exact ? "!" : "") + "; ";
  }
  return text;
}

}  // namespace cmt::fixture
