#include "overhead/annotate.h"

#include <string_view>
#include <vector>

#include "libcmt/heap/clock.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/allocations/overhead/placed_blocks.h"

namespace cmt::overhead {

using annotate::block_text;
using heap::gap;
using heap::Neighbourhood;
using heap::own_pages;
using heap::PlacedBlock;

namespace {

constexpr std::uint64_t removed = -1;
constexpr int huge_page_shift = 21;

class Annotator {
 public:
  Annotator(annotate::AnnotatedText& out, command::Complaints& complaints, const annotate::Options& options,
            int page_shift, bool counts_huge_pages)
      : page_shift_(page_shift),
        counts_huge_pages_(counts_huge_pages),
        shows_totals_(options.totals),
        out_(out),
        complaints_(complaints),
        clock_(options.clock) {}

  void annotate(const Event& event, std::string_view line) {
    clock_.advance_to(event);
    const bool ends = event.ends_block();
    const bool makes = event.makes_block();
    if (!ends && !makes) return out_.plain_line(line);
    require_addresses(event, complaints_);
    out_.begin_annotated_line(line);
    if (ends) annotate_end(event);
    if (ends && makes) out_.text("; ");
    if (makes) annotate_begin(event);
    if (shows_totals_) append_totals();
    if (makes && !shows_totals_) out_.text(" ");
    out_.end_line();
  }

  void append_leaks() {
    std::vector<PlacedBlock> leaks;
    leaks.reserve(live_.size());
    live_.for_each([&](const PlacedBlock& block) { leaks.push_back(block); });
    annotate::append_leaks(out_, std::move(leaks), clock_);
  }

 private:
  void annotate_end(const Event& event) {
    const auto found = live_.erase(event.old_address);
    if (!found) {
      out_.text("unknown block");
      if (first_tag_.is_made_here(event.old_tag)) {
        complaints_.add("block " + block_text({event.old_address, 0, 0, event.old_tag}) + " is ended but not live");
      }
      return;
    }
    if (found->block.tag != event.old_tag) {
      complaints_.add("block " + block_text({event.old_address, 0, 0, event.old_tag}) + " is ended where " +
                      block_text(found->block) + " is live");
    }
    count(*found, removed);
    out_.block_age(found->block.size, found->block.born, clock_);
    out_.text(" ago, ");
    append_neighbours(*found);
    append_pages(*found, "-", " fewer");
  }

  void annotate_begin(const Event& event) {
    first_tag_.note(event.tag);
    clock_.count_allocated(event.bytes());
    const PlacedBlock block{event.address, event.bytes(), clock_.now(), event.tag};
    const Neighbourhood found = insert_block(live_, block, [&](const Neighbourhood& old) {
      complaints_.add("block " + block_text(block) + " is made where " + block_text(old.block) + " is live");
      count(old, removed);
    });
    check_overlap(found);
    count(found, 1);
    append_neighbours(found);
    append_pages(found, ", ", " more");
  }

  /// Adds a block to the totals `times` times: 1, or -1 to remove it. Sums wrap.
  void count(const Neighbourhood& found, std::uint64_t times) {
    if (!shows_totals_) return;
    totals_.bytes += times * found.block.size;
    totals_.blocks += times;
    pages_ += times * own_pages(found, page_shift_);
    if (counts_huge_pages_) huge_pages_ += times * own_pages(found, huge_page_shift);
  }

  void append_neighbours(const Neighbourhood& found) {
    out_.text("prev ");
    out_.hex(found.prev.address);
    out_.text(", gap ");
    out_.signed_decimal(found.prev.address == 0 ? -1 : gap(found.prev, found.block));
    out_.text(", next ");
    out_.hex(found.next.address);
    out_.text(", gap ");
    out_.signed_decimal(found.next.address == 0 ? -1 : gap(found.block, found.next));
  }

  void append_pages(const Neighbourhood& found, std::string_view between, std::string_view change) {
    out_.text(", pages ");
    append_page_range(found, page_shift_, between);
    out_.text(change);
    out_.text(" pages");
    if (!counts_huge_pages_) return;
    out_.text(", huge pages ");
    append_page_range(found, huge_page_shift, between);
    out_.text(change);
  }

  /// "[8508041, 8508041], 0": the first and the last page, and the number of those that are the block's own.
  void append_page_range(const Neighbourhood& found, int shift, std::string_view between) {
    out_.text("[");
    out_.decimal(found.block.address >> shift);
    out_.text(between);
    out_.decimal(found.block.last() >> shift);
    out_.text("], ");
    out_.decimal(own_pages(found, shift));
  }

  void append_totals() {
    out_.text(", ");
    out_.live_totals(totals_.bytes, totals_.blocks);
    out_.text(" on ");
    out_.decimal(pages_);
    out_.text(" pages");
    if (!counts_huge_pages_) return;
    out_.text(", ");
    out_.decimal(huge_pages_);
    out_.text(" huge pages");
  }

  void check_overlap(const Neighbourhood& found) {
    const auto overlap = [](const PlacedBlock& low, const PlacedBlock& high) {
      return low.address != 0 && high.address != 0 && low.size != 0 && low.last() >= high.address;
    };
    if (overlap(found.prev, found.block)) {
      complaints_.add("block " + block_text(found.block) + " begins inside " + block_text(found.prev));
    }
    if (overlap(found.block, found.next)) {
      complaints_.add("block " + block_text(found.block) + " overlaps " + block_text(found.next));
    }
  }

  int page_shift_;
  bool counts_huge_pages_, shows_totals_;
  annotate::AnnotatedText& out_;
  command::Complaints& complaints_;
  heap::Clock clock_;
  heap::AddressIndex live_;
  heap::LiveTotals totals_;
  std::uint64_t pages_ = 0;       // that live blocks are on
  std::uint64_t huge_pages_ = 0;  // the same, of 2 MiB
  annotate::FirstTag first_tag_;
};

}  // namespace

void annotate_trace(const annotate::Options& options, int page_shift, bool huge_pages) {
  annotate::annotate_lines<Annotator>(options, page_shift, huge_pages);
}

}  // namespace cmt::overhead
