// Encodes and decodes the sections of a .cmt, field by field as format-spec/cmt.md lists them.

#include "libcmt/format/sections.h"

#include <boost/crc.hpp>
#include <cassert>
#include <span>

#include "libcmt/format/coding.h"

namespace cmt::format {
namespace {

enum RecordedFlag : std::uint64_t { addresses = 1, times = 2, usable = 4, stacks = 8, text_header = 16 };

void put_string(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out += text;
}

/// Checks that the version is that of a sampled trace exactly if the header has the sampling interval.
void check_version(std::uint32_t version_found, const Header& header) {
  const bool has_key = header.find("sampled").has_value();
  if (version_found == version && has_key)
    throw WireError(magic.size(), "version 1 with the key sampled, which needs version 2");
  if (version_found == version_of_samples && !has_key)
    throw WireError(magic.size(), "version 2 without the key sampled");
  if (has_key && header.sampled() == 0) throw WireError(magic.size(), "the key sampled is not a number above 0");
}

std::string take_string(Cursor& cursor, std::uint64_t limit, const char* what) {
  return std::string(cursor.bytes(cursor.varint(limit, what)));
}

void check_crc(std::string_view covered, std::uint32_t stated, const char* what) {
  if (crc32(covered) != stated) throw WireError(covered.size(), std::string("the checksum of ") + what + " is wrong");
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string put_file_header(const Header& header) {
  std::string fields;
  put_varint(fields, header.has_addresses * addresses | header.has_times * times | header.has_usable * usable |
                         header.has_stacks * stacks | header.has_header * text_header);
  put_varint(fields, header.metadata.size());
  for (const auto& [key, value] : header.metadata) {
    put_string(fields, key);
    put_string(fields, value);
  }
  std::string out(magic);
  put_u32(out, header.find("sampled") ? version_of_samples : version);
  put_u32(out, static_cast<std::uint32_t>(fields.size()));
  out += fields;
  put_u32(out, crc32(out));
  return out;
}

std::optional<std::size_t> file_header_size(std::string_view start) {
  if (start.size() < magic.size() + 8) return std::nullopt;
  Cursor cursor(start.substr(magic.size()));
  if (const std::uint32_t found = cursor.u32(); found != version && found != version_of_samples) {
    throw WireError(magic.size(), "version " + std::to_string(found) + " of .cmt; this reader knows versions " +
                                      std::to_string(version) + " and " + std::to_string(version_of_samples));
  }
  const std::uint32_t size = cursor.u32();
  if (size > header_size_limit) throw WireError(magic.size() + 4, "a header above its limit");
  return magic.size() + 8 + size + 4;
}

Header take_file_header(std::string_view bytes) {
  assert(bytes.size() >= magic.size() + 12);
  const std::string_view covered = bytes.substr(0, bytes.size() - 4);
  check_crc(covered, Cursor(bytes.substr(covered.size())).u32(), "the file header");
  Cursor cursor(covered);
  cursor.bytes(magic.size());
  const std::uint32_t version_found = cursor.u32();
  cursor.u32();
  const std::uint64_t recorded = cursor.varint();
  Header header;
  header.format = Format::cmt;
  header.has_addresses = recorded & addresses;
  header.has_times = recorded & times;
  header.has_usable = recorded & usable;
  header.has_stacks = recorded & stacks;
  header.has_header = recorded & text_header;
  const std::uint64_t count = cursor.varint(metadata_limit, "the number of metadata");
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = take_string(cursor, metadata_key_limit, "a key's size");
    header.metadata.emplace_back(std::move(key), take_string(cursor, metadata_value_limit, "a value's size"));
  }
  check_version(version_found, header);
  return header;
}

SectionStart take_section_start(std::string_view bytes) {
  Cursor cursor(bytes);
  SectionStart start{cursor.u32(), cursor.u32(), cursor.u32()};
  if (start.header_size > section_header_limit) throw WireError(4, "a section's header above its limit");
  if (start.body_size > stream_size_limit) throw WireError(8, "a section's body above its limit");
  return start;
}

std::string put_section(SectionType type, std::string_view header, std::uint32_t body_size) {
  std::string out;
  put_u32(out, static_cast<std::uint32_t>(type));
  put_u32(out, static_cast<std::uint32_t>(header.size()));
  put_u32(out, body_size);
  out += header;
  put_u32(out, crc32(out));
  return out;
}

std::string_view take_section_header(std::string_view section, const SectionStart& start) {
  Cursor cursor(section);
  cursor.bytes(SectionStart::size);
  const std::string_view header = cursor.bytes(start.header_size);
  check_crc(section.substr(0, SectionStart::size + start.header_size), cursor.u32(), "a section");
  return header;
}

bool BlockHeader::has(StreamId id) const {
  return std::any_of(streams.begin(), streams.end(),
                     [&](const StreamStart& stream) { return stream.id == static_cast<std::uint64_t>(id); });
}

std::string BlockHeader::put() const {
  std::string out;
  put_varint(out, first_event);
  put_varint(out, events);
  put_varint(out, core.next_tag);
  put_varint(out, core.named_tag);
  put_varint(out, core.thread);
  put_varint(out, time_ns);
  put_varint(out, keyframe ? 1 : 0);
  put_varint(out, streams.size());
  for (const StreamStart& stream : streams) {
    put_varint(out, stream.id);
    put_varint(out, stream.raw_size);
    put_varint(out, stream.size);
  }
  if (pools.empty()) return out;
  put_varint(out, pools.size());
  for (const std::string& pool : pools) {
    put_varint(out, pool.size());
    out += pool;
  }
  return out;
}

BlockHeader BlockHeader::take(std::string_view header) {
  Cursor cursor(header);
  BlockHeader block;
  block.first_event = cursor.varint();
  block.events = static_cast<std::uint32_t>(cursor.varint(block_events_limit, "a block's number of events"));
  block.core.next_tag = cursor.varint();
  block.core.named_tag = cursor.varint();
  block.core.thread = static_cast<std::uint32_t>(cursor.varint(0xffffffff, "a thread"));
  block.time_ns = cursor.varint();
  block.keyframe = cursor.varint(1, "the keyframe flag") != 0;
  const std::uint64_t count = cursor.varint(streams_limit, "the number of streams");
  for (std::uint64_t i = 0; i < count; ++i) {
    StreamStart stream{};
    stream.id = cursor.varint();
    stream.raw_size = cursor.varint(stream_size_limit, "a stream's size");
    stream.size = cursor.varint(stream_size_limit, "a stream's size");
    block.streams.push_back(stream);
  }
  if (cursor.at_end()) return block;
  const std::uint64_t pools = cursor.varint(pools_limit, "the number of pools");
  for (std::uint64_t i = 0; i < pools; ++i)
    block.pools.emplace_back(cursor.bytes(cursor.varint(pool_name_limit, "the length of a pool's name")));
  return block;
}

std::string put_index(const std::vector<BlockStart>& blocks, std::uint64_t names_offset) {
  std::string out;
  put_varint(out, blocks.size());
  BlockStart before;
  for (const BlockStart& block : blocks) {
    put_varint(out, (block.offset - before.offset) << 1 | (block.keyframe ? 1 : 0));
    put_varint(out, block.first_event - before.first_event);
    put_varint(out, block.next_tag - before.next_tag);
    put_varint(out, block.time_ns - before.time_ns);
    before = block;
  }
  if (names_offset != 0) put_varint(out, names_offset);
  return out;
}

static std::vector<BlockStart> take_entries(Cursor& cursor) {
  std::vector<BlockStart> blocks;
  const std::uint64_t count = cursor.varint(section_header_limit / 4, "the number of blocks");
  BlockStart entry;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t step = cursor.varint();
    entry.offset += step >> 1;
    entry.keyframe = (step & 1) != 0;
    entry.first_event += cursor.varint();
    entry.next_tag += cursor.varint();
    entry.time_ns += cursor.varint();
    blocks.push_back(entry);
  }
  return blocks;
}

std::vector<BlockStart> take_index(std::string_view header) {
  Cursor cursor(header);
  return take_entries(cursor);
}

std::uint64_t take_names_offset(std::string_view index_header) {
  Cursor cursor(index_header);
  take_entries(cursor);
  return cursor.at_end() ? 0 : cursor.varint();
}

/// The least number of counts that a writer states, so that a trace without newer kinds keeps its bytes.
constexpr std::size_t kinds_of_first_version = 25, repairs_of_first_version = 7;

/// Puts the number of counts and the counts, without the zeros at the end, but at least `count_min`.
void put_counts(std::string& out, std::span<const std::uint64_t> counts, std::size_t count_min) {
  assert(counts.size() >= count_min);
  while (counts.size() > count_min && counts.back() == 0) counts = counts.first(counts.size() - 1);
  put_varint(out, counts.size());
  for (const std::uint64_t count : counts) put_varint(out, count);
}

constexpr std::string_view stretches_mark = "RUNS", samples_lost_mark = "LOST";

void put_stretches(std::string& out, const std::vector<RunStretch>& stretches) {
  out += stretches_mark;
  put_varint(out, stretches.size());
  for (const RunStretch& stretch : stretches) {
    for (const std::uint64_t ns :
         {stretch.elapsed_ns, stretch.ran_ns, stretch.waited_ns, stretch.held_ns, stretch.busy_ns})
      put_varint(out, ns);
  }
}

std::string put_totals(const Totals& totals) {
  std::string out;
  put_varint(out, totals.truncated ? 1 : 0);
  for (const std::uint64_t value :
       {totals.events, totals.failed, totals.allocations, totals.allocated_bytes, totals.peak_live_blocks,
        totals.peak_live_bytes, totals.peak_live_bytes_event, totals.end_live_blocks, totals.end_live_bytes,
        totals.threads, totals.repairs.total()}) {
    put_varint(out, value);
  }
  put_counts(out, totals.by_kind, kinds_of_first_version);
  const bool has_stretches = !totals.stretches.empty(), has_repairs = totals.repairs.total() != 0;
  const bool has_more = has_stretches || totals.samples_lost != 0;
  if (totals.repairs.total() != totals.repairs.other || (has_more && has_repairs))
    put_counts(out, totals.repairs.by_kind, repairs_of_first_version);
  if (has_stretches) put_stretches(out, totals.stretches);
  if (totals.samples_lost != 0) put_varint(out += samples_lost_mark, totals.samples_lost);
  return out;
}

/// Takes the repairs by kind. `other` holds the total of all repairs before; afterwards it counts repairs of unknown
/// kinds.
void take_repairs(Cursor& cursor, Repairs& repairs) {
  const std::uint64_t kinds = cursor.varint(repair_kinds_limit, "the number of kinds of repairs");
  for (std::uint64_t i = 0; i < kinds; ++i) {
    const std::uint64_t count = cursor.varint(repairs.other, "a number of repairs");
    if (i >= repairs.by_kind.size()) continue;
    assert(count <= repairs.other);
    repairs.by_kind[i] = count;
    repairs.other -= count;
  }
}

void take_stretches(Cursor& cursor, std::vector<RunStretch>& stretches) {
  const std::uint64_t count = cursor.varint(stretches_limit, "the number of stretches");
  for (std::uint64_t i = 0; i < count; ++i) {
    RunStretch& stretch = stretches.emplace_back();
    for (std::uint64_t* ns :
         {&stretch.elapsed_ns, &stretch.ran_ns, &stretch.waited_ns, &stretch.held_ns, &stretch.busy_ns})
      *ns = cursor.varint(stretch_ns_limit, "a time of a stretch");
  }
}

/// Takes the fields that begin with a mark. `rest`: the bytes after the fields that come before. They may be those of a
/// later version.
void take_marked(std::string_view rest, Totals& totals) {
  Cursor cursor(rest);
  const auto takes = [&](std::string_view mark) {
    const bool is_next = rest.substr(cursor.offset()).starts_with(mark);
    if (is_next) cursor.bytes(mark.size());
    return is_next;
  };
  if (takes(stretches_mark)) take_stretches(cursor, totals.stretches);
  if (takes(samples_lost_mark)) totals.samples_lost = cursor.varint();
}

Totals take_totals(std::string_view header) {
  Cursor cursor(header);
  Totals totals;
  totals.truncated = cursor.varint(1, "the flag of truncation") != 0;
  for (std::uint64_t* value :
       {&totals.events, &totals.failed, &totals.allocations, &totals.allocated_bytes, &totals.peak_live_blocks,
        &totals.peak_live_bytes, &totals.peak_live_bytes_event, &totals.end_live_blocks, &totals.end_live_bytes,
        &totals.threads, &totals.repairs.other}) {
    *value = cursor.varint();
  }
  const std::uint64_t kinds = cursor.varint(kind_limit, "the number of kinds");
  for (std::uint64_t i = 0; i < kinds; ++i) totals.by_kind[i] = cursor.varint();
  if (totals.repairs.other != 0 && !cursor.at_end()) take_repairs(cursor, totals.repairs);
  const std::uint64_t at = cursor.offset();
  try {
    take_marked(header.substr(at), totals);
  } catch (const WireError& error) {
    throw WireError(at + error.offset(), error.what());
  }
  return totals;
}

std::string put_tail(std::uint64_t index_offset, std::uint64_t totals_offset) {
  std::string header;
  put_u64(header, index_offset);
  put_u64(header, totals_offset);
  std::string section = put_section(SectionType::tail, header);
  assert(section.size() == tail_size);
  return section;
}

bool is_tail(std::string_view bytes) {
  if (bytes.size() != tail_size) return false;
  Cursor cursor(bytes);
  return cursor.u32() == static_cast<std::uint32_t>(SectionType::tail) && cursor.u32() == 16 && cursor.u32() == 0;
}

Tail take_tail(std::string_view header) {
  Cursor cursor(header);
  Tail tail{};
  tail.index_offset = cursor.u64();
  tail.totals_offset = cursor.u64();
  return tail;
}

}  // namespace cmt::format
