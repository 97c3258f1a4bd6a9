#include <array>
#include <unordered_map>

#include "trace2cmt/filters/filter.h"

namespace trace2cmt {
namespace {

constexpr std::array<std::string_view, 2> harmless_keys{"page_size", "slice"};
constexpr std::string_view slice_label = "slice ";

/// The mark at the begin of a slice identifies nobody.
bool is_slice_mark(std::string_view label) {
  return label.starts_with(slice_label) && SliceRange::parse(label.substr(slice_label.size()));
}

class AnonymisingFilter : public Filter {
 public:
  void change_header(cmt::Header& header) override {
    header.has_addresses = false;
    std::erase_if(header.metadata, [](const auto& entry) {
      return std::find(harmless_keys.begin(), harmless_keys.end(), entry.first) == harmless_keys.end();
    });
  }

  void filter(const cmt::Event& event, const Emit& emit) override {
    cmt::Event out = event;
    out.address = out.old_address = 0;
    if (out.time_ns != cmt::unknown) {
      if (first_time_ns_ == cmt::unknown) first_time_ns_ = out.time_ns;
      out.time_ns = out.time_ns < first_time_ns_ ? 0 : out.time_ns - first_time_ns_;
    }
    if (cmt::traits(out.kind).labels && !is_slice_mark(out.label)) out.label = number_of_label(out.label);
    emit(out);
  }

 private:
  const std::string& number_of_label(std::string_view label) {
    const auto [entry, is_new] = labels_.try_emplace(std::string(label));
    if (is_new) entry->second = std::to_string(labels_.size());
    return entry->second;
  }

  std::uint64_t first_time_ns_ = cmt::unknown;
  std::unordered_map<std::string, std::string> labels_;
};

}  // namespace

std::unique_ptr<Filter> make_anonymising_filter() { return std::make_unique<AnonymisingFilter>(); }

}  // namespace trace2cmt
