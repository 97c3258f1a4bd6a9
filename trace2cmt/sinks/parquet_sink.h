#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "event_rows.h"
#include "libcmt/format/zstd.h"
#include "libcmt/trace/files.h"
#include "parquet_column.h"
#include "sink.h"
#include "thrift_compact.h"

namespace trace2cmt {

/// Writes the rows of event_rows.h as an Apache Parquet file. The essay is in parquet_sink.cpp.
class ParquetSink : public BookedSink {
 public:
  ParquetSink(int fd, cmt::Header header, int level);

  void finish(const cmt::Repairs& repairs, bool truncated) override;

 protected:
  void put(const cmt::Event& event, const cmt::format::LiveBlock* old) override;

 private:
  struct RowGroup {
    std::uint64_t offset = 0;
    std::uint64_t rows = 0;
    std::vector<ParquetChunk> chunks;
  };

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

}  // namespace trace2cmt
