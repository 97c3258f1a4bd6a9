// Writes a Parquet file, by https://parquet.apache.org/docs/file-format/:
//
//     file      = "PAR1" row_group* footer u32(size of the footer) "PAR1"
//     row_group = a chunk for each column, one after the other
//
//     chunk     = [ dictionary page ] data page, each a header in Thrift's compact protocol and a zstd frame
//
//     footer    = in the same protocol: the schema, and each chunk's offset, nulls, least and greatest value
//
// A file is written from front to back, so it can go to a pipe. A row group is kept in memory until it is written. It
// has 122,880 rows, the size that DuckDB prefers (each of its threads reads one row group), or fewer if labels take 4
// MiB. The memory is some 16 MiB.

#include <cassert>

#include "libcmt/text/utf8.h"
#include "trace2cmt/sinks/parquet_column.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::uint64_t group_rows = 122'880;
constexpr std::size_t group_label_bytes = 4 * 1024 * 1024;
constexpr std::string_view magic = "PAR1";

enum Codec : std::int32_t { zstd = 6 };
enum Repetition : std::int32_t { required = 0, optional = 1 };

void put_element(ThriftCompact& footer, const ColumnSpec& column) {
  const ParquetType type = parquet_type(column.type);
  footer.i32(1, type.physical);
  footer.i32(3, column.may_lack ? optional : required);
  footer.text(4, column.name);
  footer.i32(6, type.converted);
  footer.structure(10, [&] {
    if (type.integer_bits == 0) return footer.structure(1, [] {});
    footer.structure(10, [&] {
      footer.i8(1, type.integer_bits);
      footer.truth(2, column.type == ColumnType::int64);
    });
  });
}

void put_chunk(ThriftCompact& footer, const ColumnSpec& column, const ParquetChunk& chunk, std::uint64_t rows,
               std::uint64_t offset) {
  const bool kinds = column.type == ColumnType::kind;
  const auto put = [&](auto value) { footer.value(value); };
  footer.i32(1, parquet_type(column.type).physical);
  footer.list(2, kinds ? std::vector{0, 3, 8} : std::vector{0, 3}, put, ThriftCompact::i32_type);
  footer.list(3, std::vector{column.name}, put, ThriftCompact::text_type);
  footer.i32(4, zstd);
  footer.i64(5, rows);
  footer.i64(6, chunk.raw_size);
  footer.i64(7, chunk.size);
  footer.i64(9, offset + chunk.data_page_offset);
  if (kinds) footer.i64(11, offset);
  footer.structure(12, [&] {
    footer.i64(3, chunk.null_count);
    if (chunk.least.empty()) return;
    footer.text(5, chunk.greatest);
    footer.text(6, chunk.least);
  });
}

class ParquetSink : public LedgerSink {
 public:
  explicit ParquetSink(SinkSettings settings)
      : output_(settings.fd),
        header_(std::move(settings.header)),
        compressor_(settings.level),
        columns_(event_columns.begin(), event_columns.end()) {
    output_.write(magic);
  }

  void finish(const cmt::Repairs& repairs, bool truncated) override;

 private:
  struct RowGroup {
    std::uint64_t offset = 0;
    std::uint64_t rows = 0;
    std::vector<ParquetChunk> chunks;
  };

  void write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) override;
  void flush();
  std::string footer(const cmt::Repairs& repairs, bool truncated) const;
  static void put_row_group(ThriftCompact& footer, const RowGroup& group);

  cmt::Output output_;
  cmt::Header header_;
  cmt::format::Compressor compressor_;
  EventRows rows_;
  std::vector<ParquetColumn> columns_;
  std::vector<RowGroup> groups_;
  std::uint64_t rows_in_group_ = 0;
};

void ParquetSink::write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  assert(rows_in_group_ < group_rows);
  const EventRow row = rows_.next(event, old);
  for (std::size_t i = 0; i < row.numbers.size(); ++i) columns_[i].add(row.numbers[i]);
  ParquetColumn& labels = columns_[row.numbers.size()];
  labels.add(row.label);
  columns_.back().add(row.pool_block);
  ++rows_in_group_;
  if (rows_in_group_ == group_rows || labels.bytes() >= group_label_bytes) flush();
}

void ParquetSink::flush() {
  if (rows_in_group_ == 0) return;
  RowGroup group{.offset = output_.offset(), .rows = rows_in_group_, .chunks = {}};
  for (ParquetColumn& column : columns_) {
    std::string bytes;
    group.chunks.push_back(column.finish(compressor_, bytes));
    output_.write(bytes);
  }
  groups_.push_back(std::move(group));
  rows_in_group_ = 0;
}

void ParquetSink::put_row_group(ThriftCompact& footer, const RowGroup& group) {
  std::uint64_t offset = group.offset, raw_size = 0;
  std::size_t column = 0;
  footer.list(1, group.chunks, [&](const ParquetChunk& chunk) {
    footer.value([&] {
      footer.i64(2, offset);
      footer.structure(3, [&] { put_chunk(footer, event_columns[column++], chunk, group.rows, offset); });
    });
    offset += chunk.size;
    raw_size += chunk.raw_size;
  });
  assert(column == event_columns.size());
  footer.i64(2, raw_size);
  footer.i64(3, group.rows);
  footer.i64(5, group.offset);
  footer.i64(6, offset - group.offset);
}

std::string ParquetSink::footer(const cmt::Repairs& repairs, bool truncated) const {
  assert(rows_in_group_ == 0);
  std::vector<const ColumnSpec*> elements{nullptr};  // the root
  for (const ColumnSpec& column : event_columns) elements.push_back(&column);
  auto metadata = header_.metadata;
  metadata.emplace_back("repairs", std::to_string(repairs.total()));
  metadata.emplace_back("end", truncated ? "truncated" : "complete");

  ThriftCompact footer;
  footer.i32(1, 2);
  footer.list(2, elements, [&](const ColumnSpec* column) {
    footer.value([&] {
      if (column != nullptr) return put_element(footer, *column);
      footer.text(4, "events");
      footer.i32(5, static_cast<std::int32_t>(event_columns.size()));
    });
  });
  footer.i64(3, totals().events);
  footer.list(4, groups_, [&](const RowGroup& group) { footer.value([&] { put_row_group(footer, group); }); });
  footer.list(5, metadata, [&](const auto& entry) {
    footer.value([&] {
      footer.text(1, "cmt." + entry.first);
      footer.text(2, cmt::text::to_utf8(entry.second));
    });
  });
  footer.text(6, "trace2cmt version " CMT_VERSION);
  footer.list(7, event_columns, [&](const auto&) {  // least and greatest by the type's own order
    footer.value([&] { footer.structure(1, [] {}); });
  });
  return footer.take();
}

void ParquetSink::finish(const cmt::Repairs& repairs, bool truncated) {
  flush();
  std::string bytes = footer(repairs, truncated);
  cmt::format::put_u32(bytes, static_cast<std::uint32_t>(bytes.size()));
  output_.write(bytes += magic);
}

std::unique_ptr<Sink> make_parquet_sink(SinkSettings settings) {
  return std::make_unique<ParquetSink>(std::move(settings));
}

}  // namespace

extern const OutputForm parquet_form{"parquet", "a Parquet file", make_parquet_sink};

}  // namespace cmt::trace2cmt
