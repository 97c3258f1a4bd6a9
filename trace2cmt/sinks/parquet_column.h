#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/format/zstd.h"
#include "trace2cmt/sinks/event_rows.h"

namespace trace2cmt {

/// What the footer says of a column in a row group.
struct ParquetChunk {
  std::uint64_t raw_size = 0;  ///< with the pages' headers, before compression
  std::uint64_t size = 0;
  std::uint64_t data_page_offset = 0;  ///< from the chunk's begin
  std::uint64_t null_count = 0;
  std::string least, greatest;  ///< as they stand in a page; empty: not known
};

/// Parquet's numbers for a column's type.
struct ParquetType {
  std::int32_t physical;   ///< INT32 1, INT64 2, BYTE_ARRAY 6
  std::int32_t converted;  ///< what old readers know: UTF8 0, UINT_32 13, UINT_64 14, INT_64 18
  int integer_bits;        ///< 0: a string
};
ParquetType parquet_type(ColumnType type);

/// Gathers one column of a row group, and makes it a chunk: a data page, before it a dictionary for the kinds.
class ParquetColumn {
 public:
  explicit ParquetColumn(const ColumnSpec& spec);

  void add(std::optional<std::uint64_t> number);
  void add(std::optional<std::string_view> text);

  /// Bytes of the values so far.
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
  std::string values_;                 // as plain pages have them; of kinds one byte each
  std::vector<std::uint8_t> present_;  // one a row
  std::uint64_t least_ = ~std::uint64_t{0}, greatest_ = 0, nulls_ = 0;
};

}  // namespace trace2cmt
