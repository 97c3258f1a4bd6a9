#include "lifetimes/annotate.h"

#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/allocations/live_blocks.h"

namespace cmt::lifetimes {
namespace {

class Annotator {
 public:
  Annotator(annotate::AnnotatedText& out, command::Complaints& complaints, const annotate::Options& options)
      : shows_totals_(options.totals), out_(out), live_(options.clock, complaints) {}

  void annotate(const Event& event, std::string_view line) {
    live_.start_event(event);
    const bool ends = event.ends_block();
    const bool makes = event.makes_block();
    if (!ends && !(makes && shows_totals_)) {
      out_.plain_line(line);
      if (makes) begin_block(event);
      return;
    }
    out_.begin_annotated_line(line);
    if (ends) end_block(event.old_tag);
    if (makes) begin_block(event);
    if (shows_totals_) {
      if (ends) out_.text(", ");
      out_.live_totals(totals_.bytes, totals_.blocks);
    }
    out_.end_line();
  }

  void append_leaks() {
    std::vector<heap::PlacedBlock> leaks;
    leaks.reserve(live_.size());
    live_.for_each([&](const Block& block) { leaks.push_back({block.address, block.size, block.born, block.tag, 0}); });
    annotate::append_leaks(out_, std::move(leaks), live_.clock());
  }

 private:
  /// A heap::PlacedBlock without its slop: BlockTable is within its bounds with 32 bytes.
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    std::uint64_t address = 0;
  };

  void end_block(Tag tag) {
    const Block* const block = live_.end_block(tag);
    if (block == nullptr) return out_.text("unknown block");
    totals_.remove_block(block->size);
    out_.block_age(block->size, block->born, live_.clock());
    out_.text(" ago");
  }

  void begin_block(const Event& event) {
    totals_.add_block(event.bytes());
    if (!live_.begin_block(event, {.address = event.address})) {
      totals_.remove_block(live_.replace_block(event, {.address = event.address}).size);
    }
  }

  bool shows_totals_;
  annotate::AnnotatedText& out_;
  allocations::LiveBlocks<Block> live_;
  heap::LiveTotals totals_;
};

}  // namespace

void annotate_trace(const annotate::Options& options) { annotate::annotate_lines<Annotator>(options); }

}  // namespace cmt::lifetimes
