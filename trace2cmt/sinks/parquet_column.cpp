// Encodes a column's values as Parquet pages: plain values, runs and packed bits for presence, a dictionary for kinds.

#include "trace2cmt/sinks/parquet_column.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <span>

#include "libcmt/text/utf8.h"

namespace cmt::trace2cmt {
namespace {

enum PageType : std::int32_t { data_page = 0, dictionary_page = 2 };
enum Encoding : std::int32_t { plain = 0, rle = 3, rle_dictionary = 8 };

/// A kind's number is its index in the dictionary.
constexpr std::size_t dictionary_size = static_cast<std::size_t>(cmt::known_kinds.back()) + 1;
constexpr unsigned kind_bits = std::bit_width(dictionary_size - 1);
static_assert(kind_bits <= 8);

/// Writes small numbers in Parquet's hybrid of runs and packed bits. If all are the same, writes one run, else packs
/// all of them in groups of eight, the least significant bit first.
void put_hybrid(std::string& out, std::span<const std::uint8_t> numbers, unsigned bits) {
  assert(bits >= 1 && bits <= 8);
  if (std::adjacent_find(numbers.begin(), numbers.end(), std::not_equal_to<>()) == numbers.end()) {
    cmt::format::put_varint(out, std::uint64_t{numbers.size()} << 1);
    if (!numbers.empty()) out += static_cast<char>(numbers.front());
    return;
  }
  const std::size_t groups = (numbers.size() + 7) / 8;
  cmt::format::put_varint(out, std::uint64_t{groups} << 1 | 1);
  for (std::size_t begin = 0; begin < numbers.size(); begin += 8) {
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < 8 && begin + i < numbers.size(); ++i) {
      packed |= std::uint64_t{numbers[begin + i]} << (i * bits);
    }
    out.append(reinterpret_cast<const char*>(&packed), bits);
  }
}

void put_text(std::string& out, std::string_view text) {
  cmt::format::put_u32(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

std::string kind_names() {
  std::string out;
  for (std::size_t kind = 0; kind < dictionary_size; ++kind) put_text(out, cmt::name(static_cast<cmt::Kind>(kind)));
  return out;
}

void put_page(std::string_view page, PageType type, std::size_t count, Encoding encoding,
              cmt::format::Compressor& compressor, std::string& out, ParquetChunk& chunk) {
  const std::string_view frame = compressor.compress(page);
  ThriftCompact header;
  header.i32(1, type);
  header.i32(2, static_cast<std::int32_t>(page.size()));
  header.i32(3, static_cast<std::int32_t>(frame.size()));
  header.structure(type == data_page ? 5 : 7, [&] {
    header.i32(1, static_cast<std::int32_t>(count));
    header.i32(2, encoding);
    if (type != data_page) return;
    header.i32(3, rle);
    header.i32(4, rle);
  });
  const std::string start = header.take();
  out += start;
  out += frame;
  chunk.size += start.size() + frame.size();
  chunk.raw_size += start.size() + page.size();
}

}  // namespace

ParquetType parquet_type(ColumnType type) {
  switch (type) {
    case ColumnType::int64:
      return {2, 18, 64};
    case ColumnType::uint64:
      return {2, 14, 64};
    case ColumnType::uint32:
      return {1, 13, 32};
    default:
      return {6, 0, 0};
  }
}

ParquetColumn::ParquetColumn(const ColumnSpec& spec)
    : spec_(&spec), number_size_(is_kind() ? 1 : static_cast<std::size_t>(parquet_type(spec.type).integer_bits) / 8) {}

void ParquetColumn::add(std::optional<std::uint64_t> number) {
  present_.push_back(number.has_value());
  if (!number) return void(++nulls_);
  put_number(values_, *number);
  least_ = std::min(least_, *number);
  greatest_ = std::max(greatest_, *number);
}

void ParquetColumn::add(std::optional<std::string_view> text) {
  present_.push_back(text.has_value());
  if (!text) return void(++nulls_);
  put_text(values_, cmt::text::to_utf8(*text));
}

/// A page says first which rows have a value, if some may have none. Then come the values.
std::string ParquetColumn::data_page() const {
  assert(spec_->may_lack || nulls_ == 0);
  assert(!is_kind() || values_.size() == present_.size());
  std::string page, present;
  if (spec_->may_lack) {
    put_hybrid(present, present_, 1);
    put_text(page, present);
  }
  if (!is_kind()) return page += values_;
  page += static_cast<char>(kind_bits);
  put_hybrid(page, {reinterpret_cast<const std::uint8_t*>(values_.data()), values_.size()}, kind_bits);
  return page;
}

ParquetChunk ParquetColumn::finish(cmt::format::Compressor& compressor, std::string& out) {
  ParquetChunk chunk;
  chunk.null_count = nulls_;
  if (is_kind()) put_page(kind_names(), dictionary_page, dictionary_size, plain, compressor, out, chunk);
  chunk.data_page_offset = chunk.size;
  put_page(data_page(), PageType::data_page, present_.size(), is_kind() ? rle_dictionary : plain, compressor, out,
           chunk);
  if (parquet_type(spec_->type).integer_bits != 0 && nulls_ < present_.size()) {
    put_number(chunk.least, least_);
    put_number(chunk.greatest, greatest_);
  }
  *this = ParquetColumn(*spec_);
  return chunk;
}

}  // namespace cmt::trace2cmt
