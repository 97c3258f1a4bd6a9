// The filter of --slice. It keeps each live block as it was allocated, so that a slice can begin with all of them.

#include <cassert>
#include <utility>

#include "libcmt/block_table.h"
#include "libcmt/format/origins.h"
#include "libcmt/heap/touched_pages.h"
#include "trace2cmt/filters/filter.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::uint64_t page_size = 4096;

/// The live blocks at a moment of a trace, each as it was allocated.
class LiveAllocations {
 public:
  void follow(const cmt::Event& event) {
    if (event.tag != 0 && event.tag <= newest_)
      return;  // contradicts the events before, by the rule of cmt::Writer::add()
    if (cmt::is_about_pages(event.kind)) return follow_pages(event);
    if (event.ends_block()) {
      blocks_.erase(event.old_tag);
      pages_.end_block(event.old_tag);
    }
    newest_ = std::max({newest_, event.tag, event.old_tag});
    if (event.tag == 0) return;
    blocks_.insert(cmt::format::origin_of(event));
  }

  void start_with(const cmt::format::Origins& origins) {
    for (const cmt::Event& made : origins.blocks) {
      assert(made.tag > newest_);
      blocks_.insert(made);
      newest_ = made.tag;
    }
    for (const cmt::format::OriginRun& run : origins.runs) {
      assert(blocks_.find(run.tag) != nullptr);
      pages_.add(run.tag, run.begin, {run.end, run.kind, run.page_size}, blocks_.find(run.tag)->bytes());
    }
  }

  /// Emits the allocations of all live blocks, by rising tag.
  void emit_all(const Emit& emit) {
    std::vector<cmt::Tag> tags;
    tags.reserve(blocks_.size());
    blocks_.for_each([&](const cmt::Event& made) { tags.push_back(made.tag); });
    std::sort(tags.begin(), tags.end());
    for (const cmt::Tag tag : tags) {
      const cmt::Event& made = *blocks_.find(tag);
      emit(made);
      pages_.for_each_event(made, emit);
    }
  }

 private:
  void follow_pages(const cmt::Event& pages) {
    const cmt::Event* const made = blocks_.find(pages.old_tag);
    if (made == nullptr) return;
    if (pages.kind == cmt::Kind::discard) return pages_.drop(pages, made->bytes());
    pages_.add(pages, cmt::heap::bytes_of(pages, made->address, made->bytes()), made->bytes());
  }

  cmt::BlockTable<cmt::Event> blocks_;
  cmt::heap::TouchedPages pages_{true};
  cmt::Tag newest_ = 0;
};

class SliceFilter : public Filter {
 public:
  SliceFilter(cmt::trace::SliceRange range, std::string path) : progress_(std::move(range)), path_(std::move(path)) {}

  void change_header(cmt::Header& header) override {
    progress_.check(header, path_);
    touched_min_ = header.touched_min();
    interval_ = header.sampled();
    const std::string& text = progress_.range().text;
    for (auto& [key, value] : header.metadata) {
      if (key == "slice") return void(value += " " + text);
    }
    header.metadata.emplace_back("slice", text);
  }

  /// Marks all pages of the blocks as resident, because nobody knows which pages the program wrote to before.
  void skip_damage(std::uint64_t event, std::span<const cmt::LiveBlock> live) override {
    progress_.skip_to(event);
    has_events_ = true;
    before_ = {};
    for (const cmt::LiveBlock& block : live) {
      before_.follow({.kind = cmt::Kind::malloc, .size = block.size, .tag = block.tag, .address = block.address});
      if (touched_min_ == 0 || block.size < touched_min_) continue;
      before_.follow({.kind = cmt::Kind::resident,
                      .count = 0,
                      .alignment = page_size,
                      .old_tag = block.tag,
                      .old_address = block.address});
    }
  }

  void start_late(std::uint64_t event, const cmt::format::Origins& origins) override {
    progress_.skip_to(event);
    has_events_ = true;
    last_time_ns_ = origins.time_ns;
    before_.start_with(origins);
  }

  void filter(const cmt::Event& event, const Emit& emit) override {
    if (place_ == Place::after) return;
    const Place before = std::exchange(place_, progress_.next(event));
    if (before == Place::before && place_ != Place::before) begin(emit);
    if (place_ == Place::after) return;
    has_events_ = true;
    if (event.kind == cmt::Kind::sampling_interval) interval_ = event.size;
    if (event.time_ns != cmt::unknown) last_time_ns_ = event.time_ns;
    place_ == Place::inside ? emit(event) : before_.follow(event);
  }

  void finish(const Emit& emit) override {
    if (!progress_.finish(path_)) begin(emit);
  }

  bool done() const override { return place_ == Place::after || progress_.has_all(); }

 private:
  using Place = cmt::trace::SliceProgress::Place;

  void begin(const Emit& emit) {
    if (!has_events_) return;
    if (interval_ != 0) emit({.kind = cmt::Kind::sampling_interval, .size = interval_});
    std::exchange(before_, {}).emit_all(emit);
    const std::string label = std::string(cmt::trace::slice_label) + progress_.range().text;
    emit({.kind = cmt::Kind::mark, .time_ns = last_time_ns_, .label = label});
  }

  cmt::trace::SliceProgress progress_;
  std::string path_;
  Place place_ = Place::before;
  bool has_events_ = false;
  std::uint64_t last_time_ns_ = cmt::unknown;
  LiveAllocations before_;
  std::uint64_t touched_min_ = 0;
  std::uint64_t interval_ = 0;  // of sampling, so far; 0: the trace has all blocks
};

}  // namespace

std::unique_ptr<Filter> make_slice_filter(cmt::trace::SliceRange range, const std::string& path) {
  return std::make_unique<SliceFilter>(std::move(range), path);
}

}  // namespace cmt::trace2cmt
