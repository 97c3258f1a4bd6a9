#pragma once

#include "cmt/header.h"
#include "trace/ledger.h"

namespace cmt {

/// One form of trace, as a Writer sees it. Gets consistent events only.
class Sink {
 public:
  virtual ~Sink() = default;

  /// `old` is the live block that the event was given, or nullptr where none is known.
  virtual void add(const Event& event, const format::LiveBlock* old) = 0;
  /// Writes what was added, so that it can be read before the end.
  virtual void flush() = 0;
  virtual void finish(const Totals& totals) = 0;
};

}  // namespace cmt
