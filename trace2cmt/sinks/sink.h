#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/trace/ledger.h"
#include "options.h"

namespace trace2cmt {

/// What a conversion writes to, whatever its form.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Takes one event. False, and nothing written, if it contradicts those before: the rule of cmt::Writer::add().
  virtual bool add(const cmt::Event& event) = 0;
  virtual void finish(const cmt::Repairs& repairs, bool truncated) = 0;

  /// What was taken so far.
  virtual const cmt::Totals& totals() const = 0;
};

/// A sink of a form that cmt::Writer does not know: keeps the books, as a Writer does.
class BookedSink : public Sink {
 public:
  bool add(const cmt::Event& event) final {
    const cmt::Ledger::Entry entry = ledger_.book(event);
    if (entry.accepted) put(event, entry.old_known ? &entry.old : nullptr);
    return entry.accepted;
  }

  const cmt::Totals& totals() const final { return ledger_.totals(); }

 protected:
  /// `old` is the live block that the event was given, or nullptr where none is known.
  virtual void put(const cmt::Event& event, const cmt::format::LiveBlock* old) = 0;

  const cmt::Ledger& ledger() const { return ledger_; }

 private:
  cmt::Ledger ledger_;
};

/// `say` gets a line, without its end, for what the form could not say.
using Say = std::function<void(const std::string&)>;

/// The sink that options.to names. Borrows `fd`.
std::unique_ptr<Sink> make_sink(int fd, cmt::Header header, const Options& options, Say say);

}  // namespace trace2cmt
