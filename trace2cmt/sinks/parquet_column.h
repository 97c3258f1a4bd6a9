/// The encodings that a Parquet file needs, for parquet_sink.cpp: Thrift's compact protocol, and the pages of a column.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "libcmt/format/coding.h"
#include "libcmt/format/zstd.h"
#include "trace2cmt/sinks/event_rows.h"

namespace cmt::trace2cmt {

/// Writes structs in the compact protocol of Apache Thrift, as far as Parquet's metadata need it. A field is a byte,
/// with its type and its step from the field before, and its value. Numbers are zigzag varints. A struct ends with a
/// zero byte.
///
///     ThriftCompact thrift;
///     thrift.i32(1, 2);
///     thrift.list(2, names, [&](const auto& name) { thrift.value(name); }, ThriftCompact::text_type);
///     std::string bytes = thrift.take();
class ThriftCompact {
 public:
  enum Type : std::uint8_t { i8_type = 3, i32_type = 5, i64_type = 6, text_type = 8, list_type = 9, struct_type = 12 };

  void i8(int field, int value) { start(field, i8_type), out_ += static_cast<char>(value); }
  void i32(int field, std::int32_t value) { start(field, i32_type), this->value(value); }
  void i64(int field, std::uint64_t value) { start(field, i64_type), this->value(static_cast<std::int64_t>(value)); }
  void truth(int field, bool value) { start(field, value ? 1 : 2); }
  void text(int field, std::string_view value) { start(field, text_type), this->value(value); }

  /// `fields()` writes the fields of the struct.
  template <class Fields>
  void structure(int field, const Fields& fields) {
    start(field, struct_type);
    value(fields);
  }

  /// `put(item)` writes one value of the type.
  template <class Items, class Put>
  void list(int field, const Items& items, const Put& put, Type type = struct_type) {
    start(field, list_type);
    out_ += static_cast<char>((items.size() < 15 ? items.size() << 4 : 0xf0U) | type);
    if (items.size() >= 15) cmt::format::put_varint(out_, items.size());
    for (const auto& item : items) put(item);
  }

  void value(std::int64_t number) {
    cmt::format::put_varint(out_, cmt::format::zigzag(static_cast<std::uint64_t>(number)));
  }
  void value(std::string_view text) { cmt::format::put_varint(out_, text.size()), out_ += text; }

  template <class Fields>
  requires std::is_invocable_v<Fields>
  void value(const Fields& fields) {
    const int outer = last_field_;
    last_field_ = 0;
    fields();
    out_ += '\0';
    last_field_ = outer;
  }

  /// Ends the struct and returns its bytes.
  std::string take() { return std::move(out_) + '\0'; }

 private:
  /// Fields have to come by rising number, fewer than 16 apart.
  void start(int field, int type) {
    assert(field > last_field_ && field - last_field_ < 16);
    out_ += static_cast<char>((field - last_field_) << 4 | type);
    last_field_ = field;
  }

  std::string out_;
  int last_field_ = 0;
};

/// The footer's facts about one column of a row group.
struct ParquetChunk {
  std::uint64_t raw_size = 0;  ///< with the pages' headers, before compression
  std::uint64_t size = 0;
  std::uint64_t data_page_offset = 0;  ///< from the chunk's begin
  std::uint64_t null_count = 0;
  std::string least, greatest;  ///< as bytes of a page; empty: not known
};

/// Parquet's numbers for a column's type.
struct ParquetType {
  std::int32_t physical;   ///< INT32 1, INT64 2, BYTE_ARRAY 6
  std::int32_t converted;  ///< the type for old readers: UTF8 0, UINT_32 13, UINT_64 14, INT_64 18
  int integer_bits;        ///< 0: a string
};
ParquetType parquet_type(ColumnType type);

/// Gathers one column of a row group, and makes it a chunk: a data page, for the kinds with a dictionary page before
/// it.
class ParquetColumn {
 public:
  explicit ParquetColumn(const ColumnSpec& spec);

  void add(std::optional<std::uint64_t> number);
  void add(std::optional<std::string_view> text);

  /// The bytes of the values so far.
  std::size_t bytes() const { return values_.size(); }

  /// Appends the pages to `out`, and starts afresh.
  ParquetChunk finish(cmt::format::Compressor& compressor, std::string& out);

 private:
  bool is_kind() const { return spec_->type == ColumnType::kind; }
  std::string data_page() const;
  void put_number(std::string& out, std::uint64_t number) const {
    out.append(reinterpret_cast<const char*>(&number), number_size_);
  }

  const ColumnSpec* spec_;
  std::size_t number_size_;
  std::string values_;                 // as in a plain page; kinds have one byte each
  std::vector<std::uint8_t> present_;  // one a row
  std::uint64_t least_ = ~std::uint64_t{0}, greatest_ = 0, nulls_ = 0;
};

}  // namespace cmt::trace2cmt
