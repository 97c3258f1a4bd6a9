#pragma once

// A mutator of .cmt files whose results pass the checksums. It takes a file apart and falsifies one length, count,
// offset, order or byte. Then it assembles the file again, with frames, checksums and offsets that fit.

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcmt/format/sections.h"
#include "libcmt/format/zstd.h"

namespace cmt::fuzz {

class LyingFile {
 public:
  /// Returns nullopt if the bytes are not a whole .cmt.
  static std::optional<LyingFile> take(std::string_view bytes) {
    using namespace format;
    try {
      const auto size = file_header_size(bytes);
      if (!bytes.starts_with(magic) || !size || *size > bytes.size()) return std::nullopt;
      LyingFile file;
      file.header_ = bytes.substr(magic.size() + 8, *size - magic.size() - 12);
      for (bytes.remove_prefix(*size); !bytes.empty();) {
        const SectionStart start = take_section_start(bytes);
        if (start.total() > bytes.size()) return std::nullopt;
        file.add_section(start, take_section_header(bytes, start), bytes.substr(start.total() - start.body_size));
        bytes.remove_prefix(start.total());
      }
      return file;
    } catch (const WireError&) {
      return std::nullopt;
    }
  }

  void lie(std::mt19937& random) {
    if (sections_.empty()) return lie_in_numbers(header_, random);
    Section& section = sections_[random() % sections_.size()];
    Section& other = sections_[random() % sections_.size()];
    switch (random() % 12) {
      case 0:
        return lie_in_numbers(header_, random);
      case 1:
        return std::swap(section, other);
      case 2:
        return void(sections_.insert(sections_.begin() + static_cast<std::ptrdiff_t>(random() % sections_.size()),
                                     Section(section)));
      case 3:
        return void(sections_.erase(sections_.begin() + (&section - sections_.data())));
      case 4:
        fits_index_ = false;
        return lie_in_numbers(section.header, random);
      case 5:
        fits_tail_ = false;
        return lie_in_numbers(section.header, random);
      case 6:
        if (!section.streams.empty()) std::swap(section.streams, other.streams);
        return;
      case 7:
        if (!section.streams.empty()) section.raw_size_less = static_cast<std::uint32_t>(random() % 5) - 2;
        return;
      case 8:
      case 9:
        return lie_in_numbers(section.header, random);
      default:
        if (section.streams.empty()) return lie_in_numbers(section.header, random);
        Stream& stream = section.streams[random() % section.streams.size()];
        if (random() % 8 == 0) stream.id = static_cast<std::uint32_t>(random() % 8);
        return lie_in_numbers(stream.raw, random);
    }
  }

  std::string bytes() {
    using namespace format;
    std::string out(magic);
    put_u32(out, version);
    put_u32(out, static_cast<std::uint32_t>(header_.size()));
    out += header_;
    put_u32(out, crc32(out));
    std::vector<BlockStart> index;
    Tail tail{};
    for (Section& section : sections_) {
      const auto type = static_cast<SectionType>(section.type);
      std::string header = section.header, body = section.body;
      if (type == SectionType::block) header += frames_of(section, body);
      if (type == SectionType::block) add_to_index(index, header, out.size());
      if (type == SectionType::index && fits_index_) header = put_index(index);
      if (type == SectionType::index) tail.index_offset = out.size();
      if (type == SectionType::totals) tail.totals_offset = out.size();
      if (type == SectionType::tail && fits_tail_) {
        out += put_tail(tail.index_offset, tail.totals_offset);
      } else {
        out += put_section(type, header, static_cast<std::uint32_t>(body.size())) + body;
      }
    }
    return out;
  }

 private:
  struct Stream {
    std::uint64_t id = 0;
    std::string raw;
  };

  /// A section of the file. In a block, `header` is the part before the list of streams.
  struct Section {
    std::uint32_t type = 0;
    std::string header, body;
    std::vector<Stream> streams;
    std::uint32_t raw_size_less = 0;
  };

  void add_section(const format::SectionStart& start, std::string_view header, std::string_view body) {
    Section& section = sections_.emplace_back();
    section.type = start.type;
    section.header = header;
    body = body.substr(0, start.body_size);
    if (start.type != static_cast<std::uint32_t>(format::SectionType::block)) return void(section.body = body);
    format::BlockHeader block = format::BlockHeader::take(header);
    for (const format::StreamStart& stream : block.streams) {
      if (stream.size > body.size()) throw format::WireError(0, "cut off");
      section.streams.push_back({stream.id, {}});
      decompressor_.decompress(body.substr(0, stream.size), stream.raw_size, section.streams.back().raw);
      body.remove_prefix(stream.size);
    }
    block.streams.clear();
    section.header = block.put();
    section.header.pop_back();  // the number of streams
  }

  /// The list of a block's streams; their frames are appended to `body`.
  std::string frames_of(const Section& section, std::string& body) {
    std::string list;
    format::put_varint(list, section.streams.size());
    for (const Stream& stream : section.streams) {
      const std::string_view frame = compressor_.compress(stream.raw);
      format::put_varint(list, stream.id);
      format::put_varint(list, stream.raw.size() - section.raw_size_less);
      format::put_varint(list, frame.size());
      body += frame;
    }
    return list;
  }

  static void add_to_index(std::vector<BlockStart>& index, std::string_view header, std::uint64_t offset) {
    try {
      index.push_back(format::BlockHeader::take(header).start_at(offset));
    } catch (const format::WireError&) {
    }
  }

  /// Replaces one number by another that is near it, at a limit, or an operation in the table of forms; or changes,
  /// drops, doubles or adds bytes.
  static void lie_in_numbers(std::string& bytes, std::mt19937& random) {
    static constexpr std::array<std::uint64_t, 19> limits{
        0,        1,          2,          127,        128,        4095,  4097, 1 << 20, 1 << 26, 1 << 28,
        1u << 31, 0xffffffff, 1ull << 32, 1ull << 61, 1ull << 62, ~0ull, 28,   29,      513};  // and the operations of
                                                                                               // touched pages
    if (bytes.empty()) return void(bytes += static_cast<char>(random()));
    const std::size_t at = random() % bytes.size();
    if (random() % 4 == 0) return void(bytes[at] = static_cast<char>(random()));
    if (random() % 8 == 0) return void(bytes.erase(at, 1 + random() % 4));
    if (random() % 8 == 0) return void(bytes.insert(at, bytes.substr(random() % bytes.size(), 1 + random() % 16)));
    format::Cursor cursor(std::string_view(bytes).substr(at));
    try {
      const std::uint64_t value = cursor.varint();
      std::string number;
      format::put_varint(number, random() % 2 == 0 ? value + random() % 5 - 2 : limits[random() % limits.size()]);
      bytes.replace(at, cursor.offset(), number);
    } catch (const format::WireError&) {
      bytes[at] = 0;
    }
  }

  std::string header_;
  std::vector<Section> sections_;
  bool fits_index_ = true, fits_tail_ = true;
  static inline format::Compressor compressor_{1};
  static inline format::Decompressor decompressor_;
};

/// Returns a falsified .cmt made from a true one; empty if the bytes are no .cmt.
inline std::string lying(std::string_view bytes, unsigned seed) {
  std::mt19937 random(seed);
  auto file = LyingFile::take(bytes);
  if (!file) return {};
  for (unsigned lies = 1 + random() % 3; lies > 0; --lies) file->lie(random);
  return file->bytes();
}

}  // namespace cmt::fuzz
