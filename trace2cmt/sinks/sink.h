/// The interface of all output forms of trace2cmt, and what their sinks share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cmt/event.h"
#include "cmt/header.h"
#include "cmt/stacks.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/source.h"
#include "libcmt/trace/writer/ledger.h"

namespace cmt::trace2cmt {

/// Writes the events of a conversion in one form.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Writes an event. Returns false and writes nothing if it contradicts the events before, by the rule of
  /// cmt::Writer::add().
  virtual bool add(const cmt::Event& event) = 0;
  virtual void finish(const cmt::Repairs& repairs, bool truncated) = 0;
  /// To be called before finish() with the stretches of the recording. Forms without them ignore it.
  virtual void use_stretches(const std::vector<cmt::RunStretch>&) {}
  /// The same with Totals::samples_lost.
  virtual void use_samples_lost(std::uint64_t) {}

  /// Whether the sink takes events by add_booked() instead of add(). It then takes all events so.
  virtual bool takes_booked() const { return false; }
  /// Writes the events of the last read() of the settings' source. None of them contradicts the events before.
  virtual void add_booked(std::span<const cmt::Event>) {}

  /// The events' stacks are numbers of this table, as with cmt::Writer::use_stacks(). Forms without stacks ignore it.
  virtual void use_stacks(const cmt::StackTable&) {}

  /// The totals of the events written so far.
  virtual const cmt::Totals& totals() const = 0;
};

/// A sink of a form that cmt::Writer cannot write. It refuses contradictions and counts totals as a Writer does.
class LedgerSink : public Sink {
 public:
  bool add(const cmt::Event& event) final {
    const cmt::Ledger::Entry entry = ledger_.book(event);
    if (entry.accepted) write_event(event, entry.old_known ? &entry.old : nullptr);
    return entry.accepted;
  }

  const cmt::Totals& totals() const final { return ledger_.totals(); }

 protected:
  /// `old` is the live block that the event was given, or nullptr if the trace does not know it.
  virtual void write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) = 0;

 private:
  cmt::Ledger ledger_;
};

/// Prints a message, a line without LF, such as one about losses of a form.
using Say = std::function<void(const std::string&)>;

struct SinkSettings {
  int fd;              ///< to write to; borrowed
  cmt::Header header;  ///< of the trace
  int level;           ///< of compression with zstd
  unsigned jobs;       ///< how many threads may work at once
  Say say;
  std::string path{};  ///< of the output; empty or "-" if it has none
  /// The source whose events come unchanged, if it knows the live blocks; else nullptr.
  const cmt::Source* source = nullptr;
};

/// One form of output.
struct OutputForm {
  std::string_view name;         ///< as --to takes it
  std::string_view binary_name;  ///< "a .cmt", for the message that refuses to write it to a terminal; empty for text
  std::unique_ptr<Sink> (*make_sink)(SinkSettings settings);
  bool has_stacks = false;   ///< the form has call stacks
  bool has_samples = false;  ///< a reader of the form knows whether the trace is sampled
};

/// All output forms. Each is defined in a file of this folder; the list is in sink.cpp.
std::span<const OutputForm> output_forms();

/// The output form of this name, or nullptr.
const OutputForm* find_output_form(std::string_view name);

/// Gathers text and writes it 64 KiB at a time.
class BufferedOutput {
 public:
  explicit BufferedOutput(int fd, const char* doing = "writing") : output_(fd, doing) {}

  /// The text that is not yet written. The caller appends to it.
  std::string& text() { return text_; }

  void flush_if_full() {
    if (text_.size() >= capacity) flush();
  }
  void flush() {
    output_.write(text_);
    text_.clear();
  }

 private:
  static constexpr std::size_t capacity = 64 * 1024;

  cmt::Output output_;
  std::string text_;
};

}  // namespace cmt::trace2cmt
