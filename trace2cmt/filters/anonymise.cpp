#include "anonymise.h"

#include <algorithm>
#include <array>

#include "slice.h"

namespace trace2cmt {
namespace {

constexpr std::array<std::string_view, 2> harmless_keys{"page_size", "slice"};
constexpr std::string_view slice_label = "slice ";

/// A mark that a slice begins with: it names no one.
bool is_slice_mark(std::string_view label) {
  return label.starts_with(slice_label) && SliceRange::parse(label.substr(slice_label.size()));
}

}  // namespace

void Anonymise::change(cmt::Header& header) {
  header.has_addresses = false;
  std::erase_if(header.metadata, [](const auto& entry) {
    return std::find(harmless_keys.begin(), harmless_keys.end(), entry.first) == harmless_keys.end();
  });
}

void Anonymise::add(const cmt::Event& event, const Emit& emit) {
  cmt::Event out = event;
  out.address = out.old_address = 0;
  if (out.time_ns != cmt::unknown) {
    if (first_time_ns_ == cmt::unknown) first_time_ns_ = out.time_ns;
    out.time_ns = out.time_ns < first_time_ns_ ? 0 : out.time_ns - first_time_ns_;
  }
  if (cmt::traits(out.kind).labels && !is_slice_mark(out.label)) out.label = number_of(out.label);
  emit(out);
}

const std::string& Anonymise::number_of(std::string_view label) {
  const auto [entry, is_new] = labels_.try_emplace(std::string(label));
  if (is_new) entry->second = std::to_string(labels_.size());
  return entry->second;
}

}  // namespace trace2cmt
