#pragma once

#include <string>

#include "event_rows.h"
#include "libcmt/trace/files.h"
#include "sink.h"

namespace trace2cmt {

/// Writes the rows of event_rows.h as RFC 4180 has them: a line of names, CRLF, quotes where they are needed; null is
/// an empty field.
class CsvSink : public BookedSink {
 public:
  explicit CsvSink(int fd);

  void finish(const cmt::Repairs& repairs, bool truncated) override;

 protected:
  void put(const cmt::Event& event, const cmt::format::LiveBlock* old) override;

 private:
  cmt::Output output_;
  EventRows rows_;
  std::string buffer_;
};

}  // namespace trace2cmt
