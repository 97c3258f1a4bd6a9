#include "overhead/annotate.h"

#include <vector>

#include "libcmt/heap/address_index.h"

namespace cmt::overhead {

using annotate::block_text;
using heap::gap;
using heap::Neighbourhood;
using heap::own_pages;
using heap::PlacedBlock;

namespace {

constexpr std::uint64_t removed = -1;

}  // namespace

void require_addresses(const Event& event, const command::Complaints& complaints) {
  if ((event.ends_block() && event.old_address == 0) || (event.makes_block() && event.address == 0)) {
    throw FormatError(complaints.place(), "a block without an address: its neighbours cannot be known");
  }
}

void Annotator::annotate(const Event& event, std::string_view line) {
  clock_.advance_to(event);
  const bool ends = event.ends_block();
  const bool makes = event.makes_block();
  if (!ends && !makes) return out_.plain_line(line);
  require_addresses(event, complaints_);
  out_.begin_annotated_line(line);
  if (ends) annotate_end(event);
  if (ends && makes) out_.text("; ");
  if (makes) annotate_begin(event);
  if (settings_.totals) append_totals();
  if (makes && !settings_.totals) out_.text(" ");
  out_.end_line();
}

void Annotator::annotate_end(const Event& event) {
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

void Annotator::annotate_begin(const Event& event) {
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
void Annotator::count(const Neighbourhood& found, std::uint64_t times) {
  if (!settings_.totals) return;
  totals_.bytes += times * found.block.size;
  totals_.blocks += times;
  pages_ += times * own_pages(found, settings_.page_shift);
  if (settings_.huge_pages) huge_pages_ += times * own_pages(found, huge_page_shift);
}

void Annotator::append_neighbours(const Neighbourhood& found) {
  out_.text("prev ");
  out_.hex(found.prev.address);
  out_.text(", gap ");
  out_.signed_decimal(found.prev.address == 0 ? -1 : gap(found.prev, found.block));
  out_.text(", next ");
  out_.hex(found.next.address);
  out_.text(", gap ");
  out_.signed_decimal(found.next.address == 0 ? -1 : gap(found.block, found.next));
}

void Annotator::append_pages(const Neighbourhood& found, std::string_view between, std::string_view change) {
  out_.text(", pages ");
  append_page_range(found, settings_.page_shift, between);
  out_.text(change);
  out_.text(" pages");
  if (!settings_.huge_pages) return;
  out_.text(", huge pages ");
  append_page_range(found, huge_page_shift, between);
  out_.text(change);
}

/// "[8508041, 8508041], 0": the first and the last page, and the number of those that are the block's own.
void Annotator::append_page_range(const Neighbourhood& found, int shift, std::string_view between) {
  out_.text("[");
  out_.decimal(found.block.address >> shift);
  out_.text(between);
  out_.decimal(found.block.last() >> shift);
  out_.text("], ");
  out_.decimal(own_pages(found, shift));
}

void Annotator::append_totals() {
  out_.text(", ");
  out_.live_totals(totals_.bytes, totals_.blocks);
  out_.text(" on ");
  out_.decimal(pages_);
  out_.text(" pages");
  if (!settings_.huge_pages) return;
  out_.text(", ");
  out_.decimal(huge_pages_);
  out_.text(" huge pages");
}

void Annotator::append_leaks() {
  std::vector<PlacedBlock> leaks;
  leaks.reserve(live_.size());
  live_.for_each([&](const PlacedBlock& block) { leaks.push_back(block); });
  annotate::append_leaks(out_, std::move(leaks), clock_);
}

void Annotator::check_overlap(const Neighbourhood& found) {
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

}  // namespace cmt::overhead
