// The filter of --anonymise. It keeps a table of its own for stacks and labels, with numbers in place of names.

#include <array>
#include <cassert>
#include <unordered_map>

#include "trace2cmt/filters/filter.h"
#include "trace2cmt/stacks/stack_copy.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::array<std::string_view, 7> harmless_keys{"kept",    "memory", "origin",     "page_size",
                                                        "sampled", "slice",  "touched_min"};
constexpr std::string_view interpreter_pools = "python";

/// Slices that were given by marks, without the names of these.
std::string without_names(const std::string& slices) {
  if (slices.find('@') == std::string::npos) return slices;
  if (!cmt::trace::begins_late(slices)) return ":@1";
  return cmt::trace::ends_early(slices) ? "@1" : "@1:";
}

class AnonymisingFilter : public Filter {
 public:
  void change_header(cmt::Header& header) override {
    header.has_addresses = false;
    std::erase_if(header.metadata, [](const auto& entry) {
      return std::find(harmless_keys.begin(), harmless_keys.end(), entry.first) == harmless_keys.end();
    });
    for (auto& [key, value] : header.metadata) {
      if (key != "slice") continue;
      slices_ = value;
      value = without_names(value);
    }
  }

  const cmt::StackTable& change_stacks(const cmt::StackTable& stacks) override {
    const auto hide_module = [this](cmt::Module& module) {
      module = {.path = "module " + std::to_string(stacks_.module_count())};
    };
    const auto hide_frame = [this](cmt::Frame& frame) {
      if (frames_of_module_.size() <= frame.module) frames_of_module_.resize(frame.module + 1);
      frame.address = ++frames_of_module_[frame.module];
      frame.is_exact = false;
    };
    copy_.emplace(stacks, stacks_, StackCopy::Changes{hide_module, hide_frame});
    return stacks_;
  }

  void filter(const cmt::Event& event, const Emit& emit) override {
    cmt::Event out = event;
    out.address = out.old_address = 0;
    assert(out.stack == 0 || copy_);
    if (out.stack != 0) out.stack = copy_->copy(out.stack);
    if (out.time_ns != cmt::unknown) {
      if (first_time_ns_ == cmt::unknown) first_time_ns_ = out.time_ns;
      out.time_ns = out.time_ns < first_time_ns_ ? 0 : out.time_ns - first_time_ns_;
    }
    const bool names_things = out.kind == cmt::Kind::mark || out.kind == cmt::Kind::thread_name;
    const bool names_pool = cmt::is_of_pool(out.kind) && !out.label.starts_with(interpreter_pools);
    if (cmt::trace::begins_slice(out, slices_)) {
      slice_mark_.assign(cmt::trace::slice_label)
          .append(without_names(std::string(out.label.substr(cmt::trace::slice_label.size()))));
      out.label = slice_mark_;
    } else if (names_pool || names_things) {
      out.label = number_of_label(out.label);
    }
    emit(out);
  }

 private:
  const std::string& number_of_label(std::string_view label) {
    const auto [entry, is_new] = labels_.try_emplace(std::string(label));
    if (is_new) entry->second = std::to_string(labels_.size());
    return entry->second;
  }

  std::string slices_;      // as in the header that is read
  std::string slice_mark_;  // the current one's label
  std::uint64_t first_time_ns_ = cmt::unknown;
  std::unordered_map<std::string, std::string> labels_;
  cmt::StackTable stacks_;
  std::optional<StackCopy> copy_;
  std::vector<std::uint64_t> frames_of_module_;  // number of frames, by module
};

}  // namespace

std::unique_ptr<Filter> make_anonymising_filter() { return std::make_unique<AnonymisingFilter>(); }

}  // namespace cmt::trace2cmt
