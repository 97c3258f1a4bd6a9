// Reads the sections of a .cmt in their order, and decodes the blocks of the stream.
//
// Checking and decompressing a block does not depend on the blocks before it, so it is a step of its own. With several
// threads, other threads prepare the next blocks while this one decodes. An error in a prepared block is thrown after
// all blocks before it have been handed out. At most as many blocks as threads are prepared, with some 1 MB each.
//
// Decoding a block is serial, but has two steps, which two threads can do at once for different events: the core stream
// does not depend on the others. With a trace of cc1plus with addresses, the second step takes some 60 % of the time.
//
// If the input can seek, the tail leads to index and totals. A file without a tail (because its recorder was killed)
// and a pipe are read from the start. The reader reports a missing end when it gets there.

#include "libcmt/trace/file/cmt_source.h"

#include <algorithm>
#include <cassert>

#include "libcmt/format/coding.h"
#include "libcmt/format/stacks/stack_names.h"

namespace cmt {

using format::SectionStart;
using format::SectionType;
using format::WireError;

CmtSource::CmtSource(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log)
    : Source(std::move(input), log), options_(options), decoder_(options_, stacks_) {
  try {
    read_header();
    if (input_->can_seek()) find_tail();
    if (tail_ && options_.stacks) find_names();
  } catch (const WireError& error) {
    fail(error);
  }
}

void CmtSource::fail(const WireError& error) const {
  throw FormatError(input_->place(section_offset_ + error.offset()), error.what());
}

void CmtSource::read_header() {
  const auto size = format::file_header_size(input_->peek(format::magic.size() + 8));
  if (!size) throw WireError(0, "the file header is cut off");
  const std::string_view bytes = input_->peek(*size);
  if (bytes.size() < *size) throw WireError(0, "the file header is cut off");
  header_ = format::take_file_header(bytes.substr(0, *size));
  if (header_.sampled() != 0) decoder_.expect_samples();
  options_.addresses |= options_.addresses_of_touched && header_.touched_min() != 0 && header_.has_addresses;
  input_->skip(*size);
}

/// Decodes the header of a section that the tail points to.
template <typename Take>
auto CmtSource::take_from_tail(std::uint64_t offset, SectionType type, const char* what, const Take& take) {
  assert(tail_ && input_->size() >= format::tail_size);
  const std::uint64_t tail_offset = input_->size() - format::tail_size;
  section_offset_ = tail_offset;
  const std::string name = what;
  if (offset > tail_offset - SectionStart::size) throw WireError(0, "the " + name + " are after the tail");
  section_offset_ = offset;
  const SectionStart start = format::take_section_start(input_->at(offset, SectionStart::size));
  if (start.type != static_cast<std::uint32_t>(type)) throw WireError(0, "no " + name + " where the tail says");
  if (start.total() > tail_offset - offset) throw WireError(0, "the " + name + " reach beyond the tail");
  return take_fields(take, format::take_section_header(input_->at(offset, start.total()), start));
}

/// Reads the totals that the tail points to. A missing tail is no error here: read() reports it at the end.
void CmtSource::find_tail() {
  if (input_->size() < input_->offset() + format::tail_size) return;
  const std::string tail_section = input_->at(input_->size() - format::tail_size, format::tail_size);
  if (!format::is_tail(tail_section)) return;
  const SectionStart start = format::take_section_start(tail_section);
  section_offset_ = input_->size() - format::tail_size;
  tail_ = format::take_tail(format::take_section_header(tail_section, start));
  totals_ = take_from_tail(tail_->totals_offset, SectionType::totals, "totals", format::take_totals);
}

/// Reads the names that the index points to. Ignores all faults in them: read() reports these when it gets there, since
/// the events before are good.
void CmtSource::find_names() {
  const std::uint64_t section_offset = section_offset_;
  try {
    const std::uint64_t offset =
        take_from_tail(tail_->index_offset, SectionType::index, "index's entries", format::take_names_offset);
    if (offset == 0 || offset >= tail_->index_offset) return;
    const SectionStart start = format::take_section_start(input_->at(offset, SectionStart::size));
    if (start.type != static_cast<std::uint32_t>(SectionType::names)) return;
    if (start.total() > tail_->index_offset - offset) return;
    take_names(input_->at(offset, start.total()), start);
    format::take_names(names_, stacks_);
    names_are_known_ = true;
  } catch (const WireError&) {
  }
  names_.clear();
  section_offset_ = section_offset;
}

void CmtSource::take_names(std::string_view section, const SectionStart& start) {
  const std::string_view header = format::take_section_header(section, start);
  const std::uint64_t raw_size = take_fields(
      [](std::string_view fields) {
        return format::Cursor(fields).varint(format::stream_size_limit, "the size of the names");
      },
      header);
  const std::uint64_t frame = start.total() - start.body_size;
  names_offset_ = section_offset_ + frame;
  try {
    decompressor_.decompress(section.substr(frame, start.body_size), raw_size, names_);
  } catch (const WireError& error) {
    throw WireError(frame, "names: byte " + format::hex_text(error.offset()) + ": " + error.what());
  }
}

/// Takes the names after all events have been handed out, when the modules in them are defined.
void CmtSource::end_stacks() {
  if (names_.empty()) return;
  const std::string names = std::exchange(names_, {});
  try {
    if (!std::exchange(names_are_known_, true)) format::take_names(names, stacks_);
    format::take_unloaded(names, decoder_.definitions());
  } catch (const WireError& error) {
    section_offset_ = names_offset_;
    throw WireError(0, "names: byte " + format::hex_text(error.offset()) + ": " + error.what());
  }
}

const std::vector<BlockStart>& CmtSource::blocks() {
  if (blocks_) return *blocks_;
  blocks_.emplace();
  if (!tail_) return *blocks_;
  const std::uint64_t section_offset = section_offset_;
  try {
    blocks_ = take_from_tail(tail_->index_offset, SectionType::index, "index's entries", format::take_index);
    check_index();
    section_offset_ = section_offset;
    return *blocks_;
  } catch (const WireError& error) {
    blocks_.reset();
    fail(error);
  }
}

/// Checks that the entries of the index can belong to this file: they rise, and their offsets are in the file.
void CmtSource::check_index() const {
  assert(blocks_ && tail_ && totals_);
  const auto rises = [](const BlockStart& before, const BlockStart& block) {
    return block.offset > before.offset && block.first_event > before.first_event &&
           block.next_tag >= before.next_tag && block.time_ns >= before.time_ns;
  };
  for (std::size_t i = 0; i < blocks_->size(); ++i) {
    const BlockStart& block = (*blocks_)[i];
    const bool is_first = i == 0 && block.first_event == 0 && block.keyframe;
    if ((is_first || (i != 0 && rises((*blocks_)[i - 1], block))) && block.offset < tail_->index_offset &&
        block.first_event < totals_->events) {
      continue;
    }
    throw WireError(0, "entry " + std::to_string(i + 1) + " of the index is of no block of this file");
  }
}

/// Jumps to the block of an event or, if addresses are wanted, to the keyframe before it.
std::optional<std::uint64_t> CmtSource::go_to(std::uint64_t event) {
  const BlockStart* found = nullptr;
  for (const BlockStart& block : blocks()) {
    if (block.first_event > event) break;
    if (found == nullptr || block.keyframe || !options_.addresses) found = &block;
  }
  if (found == nullptr) return std::nullopt;
  if (options_.stacks) define_stacks_before(found->offset);
  ahead_.clear();
  ahead_error_ = nullptr;
  decoder_.stop();
  input_->go_to(found->offset);
  events_ahead_ = found->first_event;
  jumped_to_ = *found;
  fresh_ = true;
  at_end_ = false;
  return found->first_event;
}

bool CmtSource::read_stacks() {
  if (blocks().empty()) return false;
  if (options_.stacks) define_stacks_before(unknown);
  return true;
}

/// Decodes the definitions in the blocks before an offset, unless they are known. Reads no other part of these blocks.
void CmtSource::define_stacks_before(std::uint64_t offset) {
  const std::uint64_t section_offset = section_offset_;
  for (const BlockStart& block : blocks()) {
    if (block.offset >= offset) break;
    if (decoder_.knows_stacks_of(block.first_event)) continue;
    section_offset_ = block.offset;
    try {
      define_stacks_of(block);
    } catch (const WireError& error) {
      fail(error);
    }
  }
  section_offset_ = section_offset;
}

void CmtSource::define_stacks_of(const BlockStart& block) {
  bool has_names = false;
  take_stream_of(block, format::StreamId::stack_nodes, [&](const auto& header, std::string_view definitions) {
    decoder_.define_stacks(header, definitions);
    has_names = header.has(format::StreamId::frame_names);
  });
  if (!has_names || names_are_known_) return;
  take_stream_of(block, format::StreamId::frame_names,
                 [this](const auto&, std::string_view names) { format::take_frame_names(names, stacks_); });
}

std::vector<LiveBlock> CmtSource::list_live_before(const BlockStart& keyframe) {
  const std::uint64_t section_offset = std::exchange(section_offset_, keyframe.offset);
  std::vector<LiveBlock> blocks;
  try {
    take_stream_of(keyframe, format::StreamId::live, [&](const auto&, std::string_view table) {
      if (table.empty()) throw WireError(0, "a keyframe without live blocks");
      blocks = format::by_tag(format::take_live(table));
    });
  } catch (const WireError& error) {
    fail(error);
  }
  section_offset_ = section_offset;
  return blocks;
}

std::optional<format::Origins> CmtSource::list_origins_before(const BlockStart& keyframe) {
  const std::uint64_t section_offset = std::exchange(section_offset_, keyframe.offset);
  std::optional<format::Origins> origins;
  try {
    take_stream_of(keyframe, format::StreamId::origins, [&](const auto&, std::string_view stream) {
      if (stream.empty()) return;
      const std::vector<LiveBlock> live = list_live_before(keyframe);
      if (options_.stacks) define_stacks_before(keyframe.offset);
      origins = format::take_origins(stream, live,
                                     options_.stacks ? decoder_.definitions().stacks() : std::span<const StackId>());
    });
  } catch (const WireError& error) {
    fail(error);
  }
  section_offset_ = section_offset;
  return origins;
}

/// Reads one stream of a block that the index names, and no other part of the block. `take` gets the block's header and
/// the stream's content, which is empty if the block lacks the stream.
template <typename Take>
void CmtSource::take_stream_of(const BlockStart& block, format::StreamId id, const Take& take) {
  const SectionStart start = format::take_section_start(input_->at(block.offset, SectionStart::size));
  const std::uint64_t head_size = start.total() - start.body_size;
  const std::string head = input_->at(block.offset, head_size);
  if (start.type != static_cast<std::uint32_t>(SectionType::block)) throw WireError(0, "no block where the index says");
  const format::BlockHeader header = take_fields(format::BlockHeader::take, format::take_section_header(head, start));
  if (header.start_at(block.offset) != block) throw WireError(0, "another block than the index says");
  std::uint64_t offset = head_size;
  std::string content;
  for (const format::StreamStart& stream : header.streams) {
    if (stream.id == static_cast<std::uint64_t>(id)) {
      try {
        decompressor_.decompress(input_->at(block.offset + offset, stream.size), stream.raw_size, content);
        return take(header, content);
      } catch (const WireError& error) {
        fail_in_stream(id, offset, error);
      }
    }
    offset += stream.size;
  }
  take(header, {});
}

std::span<const Event> CmtSource::read() {
  try {
    for (;;) {
      if (const std::span<const Event> events = decoder_.next(); !events.empty()) {
        if (decoder_.unknown_kinds() != unknown_kinds_) count_repairs();
        return events;
      }
      if (!next_block()) return end_stacks(), std::span<const Event>{};
    }
  } catch (const WireError& error) {
    fail(error);
  }
}

void CmtSource::read_core(ReadStep& step, std::span<Event> events) {
  const ReadStep before = std::exchange(step, {});
  try {
    if (decoder_.block() == nullptr && !next_block()) return;
    step.block = decoder_.block();
    if (before.block != step.block || before.has_labels) std::fill(events.begin(), events.end(), Event{});
    while (step.count < events.size() && !decoder_.has_read_block()) {
      step.count += decoder_.next_core(events.subspan(step.count));
      step.has_labels |= decoder_.has_labels();
    }
    if (decoder_.unknown_kinds() != unknown_kinds_) count_repairs();
    step.ends_block = decoder_.has_read_block();
    if (step.ends_block) decoder_.stop();
  } catch (const WireError& error) {
    fail(error);
  }
}

/// Decodes the events in the same portions as read() does, so that an error comes after the same events.
void CmtSource::complete(ReadStep& step, std::span<Event> events) {
  const std::size_t count = std::exchange(step.count, 0);
  try {
    if (step.block == nullptr) return end_stacks();
    while (step.count < count) {
      const std::size_t more = std::min(count - step.count, BlockDecoder::batch_events);
      decoder_.complete(step.block, events.subspan(step.count, more));
      step.count += more;
    }
    if (step.ends_block) decoder_.complete(step.block, {});
  } catch (const WireError& error) {
    if (step.block == nullptr) fail(error);
    throw FormatError(input_->place(step.block->offset + error.offset()), error.what());
  }
}

/// Adds up the repairs that the input states about itself and the events of unknown kinds.
void CmtSource::count_repairs() {
  unknown_kinds_ = decoder_.unknown_kinds();
  repairs_ = stated_repairs_;
  repairs_.add(Repair::unknown_kind, unknown_kinds_);
}

bool CmtSource::next_block() {
  read_ahead();
  if (ahead_.empty()) {
    if (ahead_error_) std::rethrow_exception(ahead_error_);
    return false;
  }
  Ahead next = std::move(ahead_.front());
  ahead_.pop_front();
  section_offset_ = next.offset;
  decoder_.start(next.bytes.get(), next.fresh, next.offset);
  return true;
}

void CmtSource::read_ahead() {
  const std::size_t wanted = std::max(options_.threads, 1u);
  try {
    while (!at_end_ && !ahead_error_ && ahead_.size() < wanted) take_section();
  } catch (const WireError& error) {
    ahead_error_ = std::make_exception_ptr(FormatError(input_->place(section_offset_ + error.offset()), error.what()));
  } catch (const std::exception&) {
    ahead_error_ = std::current_exception();
  }
}

void CmtSource::cut_off(const std::string& what) {
  if (jumped_to_) throw WireError(0, "no block where the index says");
  at_end_ = truncated_ = true;
  if (options_.strict) log_.report(input_->place(section_offset_), what);
}

/// Reads one whole section. Returns false at the end of the input.
bool CmtSource::take_section() {
  section_offset_ = input_->offset();
  std::string_view section = input_->peek(SectionStart::size);
  if (section.size() < SectionStart::size) {
    cut_off("the end of the trace is missing");
    return false;
  }
  const SectionStart start = format::take_section_start(section);
  const std::uint64_t head_size = start.total() - start.body_size;
  section = input_->peek(head_size).substr(0, head_size);
  if (section.size() == head_size) format::take_section_header(section, start);  // checks it before its sizes are used
  section = input_->peek(start.total()).substr(0, start.total());
  if (section.size() < start.total()) {
    cut_off("a section is cut off");
    return false;
  }
  const std::string_view header = format::take_section_header(section, start);
  if (jumped_to_ && start.type != static_cast<std::uint32_t>(SectionType::block)) {
    throw WireError(0, "no block where the index says");
  }
  switch (static_cast<SectionType>(start.type)) {
    case SectionType::block:
      take_block(section, start);
      break;
    case SectionType::names:
      if (options_.stacks) take_names(section, start);
      break;
    case SectionType::totals:
      totals_ = take_fields(format::take_totals, header);
      truncated_ = totals_->truncated;
      stated_repairs_ = totals_->repairs;
      count_repairs();
      break;
    case SectionType::tail:
      at_end_ = true;
      break;
    case SectionType::index:
      take_fields(format::take_index, header);
      break;
    default:
      break;  // a later extension
  }
  input_->skip(start.total());
  if (at_end_ && !input_->peek(1).empty()) throw WireError(start.total(), "bytes after the tail");
  return !at_end_;
}

/// Prepares a block, here or on a thread of its own.
void CmtSource::take_block(std::string_view section, const SectionStart& start) {
  const format::BlockHeader header =
      take_fields(format::BlockHeader::take, format::take_section_header(section, start));
  if (jumped_to_ && header.start_at(section_offset_) != *jumped_to_) {
    throw WireError(0, "another block than the index says");
  }
  jumped_to_.reset();
  if (header.first_event != events_ahead_) throw WireError(0, "blocks are missing before this one");
  events_ahead_ += header.events;
  const bool fresh = std::exchange(fresh_, false);
  const bool live = fresh && options_.addresses;
  std::future<BlockBytes> bytes;
  if (options_.threads > 1) {
    const auto prepare = [this, own = std::string(section), start, live] {
      format::Decompressor decompressor;
      return BlockBytes(own, start, options_, live, decompressor);
    };
    bytes = std::async(std::launch::async, prepare);
  } else {
    std::promise<BlockBytes> done;
    done.set_value(BlockBytes(section, start, options_, live, decompressor_));
    bytes = done.get_future();
  }
  assert(ahead_.size() < std::max(options_.threads, 1u));
  ahead_.push_back({section_offset_, fresh, std::move(bytes)});
}

}  // namespace cmt
