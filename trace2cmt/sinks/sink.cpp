#include "sink.h"

#include <thread>

#include "cmt/writer.h"
#include "csv_sink.h"
#include "legacy_sink.h"
#include "parquet_sink.h"
#include "rep_sink.h"

namespace trace2cmt {
namespace {

class WriterSink : public Sink {
 public:
  WriterSink(int fd, cmt::Header header, cmt::WriteOptions options) : writer_(fd, std::move(header), options) {}

  bool add(const cmt::Event& event) override { return writer_.add(event); }
  void finish(const cmt::Repairs& repairs, bool truncated) override { writer_.finish(repairs, truncated); }
  const cmt::Totals& totals() const override { return writer_.totals(); }

 private:
  cmt::Writer writer_;
};

}  // namespace

std::unique_ptr<Sink> make_sink(int fd, cmt::Header header, const Options& options, Say say) {
  switch (options.to) {
    case To::cmt:
    case To::text: {
      const cmt::Format format = options.to == To::cmt ? cmt::Format::cmt : cmt::Format::text;
      return std::make_unique<WriterSink>(
          fd, std::move(header),
          cmt::WriteOptions{.format = format, .level = options.level, .threads = std::thread::hardware_concurrency()});
    }
    case To::legacy:
      return std::make_unique<LegacySink>(fd, std::move(say));
    case To::rep:
      return std::make_unique<RepSink>(fd, std::move(say));
    case To::csv:
      return std::make_unique<CsvSink>(fd);
    case To::parquet:
      return std::make_unique<ParquetSink>(fd, std::move(header), options.level);
  }
  return nullptr;
}

}  // namespace trace2cmt
