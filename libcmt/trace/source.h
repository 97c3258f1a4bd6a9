/// The interface between Reader and the forms that it reads, and the state of a Reader.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmt/header.h"
#include "cmt/reader.h"
#include "libcmt/block_table.h"
#include "libcmt/format/origins.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/first_defects.h"

namespace cmt {

/// Collects the defects of one input: counts them, and passes them on or throws the first.
class DefectLog {
 public:
  explicit DefectLog(const ReadOptions& options) : options_(options) {}

  /// Throws FormatError where the reader is strict.
  void report(const std::string& place, const std::string& what, Repair repair = Repair::not_understood) {
    if (options_.strict) throw FormatError(place, what);
    repairs_.add(repair);
    if (is_holding_) return hold({place, what, repair});
    if (options_.on_defect) options_.on_defect({place, what, repair});
  }

  /// Holds defects back until release() passes them on. An input without an event is no trace, and its reader throws
  /// one error instead of reporting the defects.
  void hold() { is_holding_ = true; }
  /// The number of defects held back. held() has the texts of the first.
  std::uint64_t held_count() const { return held_count_; }
  void release() {
    is_holding_ = false;
    held_count_ = 0;
    first_.clear();
    for (const Defect& defect : std::exchange(held_, {})) {
      if (options_.on_defect) options_.on_defect(defect);
    }
  }
  const std::vector<Defect>& held() const { return held_; }

  const Repairs& repairs() const { return repairs_; }

 private:
  void hold(Defect defect) {
    ++held_count_;
    const auto counted_by = first_.counted_by(defect.what);
    if (!counted_by) return held_.push_back(std::move(defect));
    ++held_[*counted_by].count;
  }

  const ReadOptions& options_;
  Repairs repairs_;
  bool is_holding_ = false;
  std::uint64_t held_count_ = 0;
  FirstDefects first_;
  std::vector<Defect> held_;  // the first
};

struct OpenBlock;

/// The progress of two steps of reading some events.
struct ReadStep {
  std::shared_ptr<const OpenBlock>
      block{};              ///< the events' block, which owns their labels; null at the end of the trace
  std::size_t count = 0;    ///< the number of events that were read
  bool ends_block = false;  ///< the events are the last ones of the block
  bool has_labels = false;  ///< some events may have a label
};

/// Events with the lines that they came from, and the memory of both.
struct LineBatch {
  std::vector<Event> events;
  std::deque<std::string> labels;  ///< of these events
  std::vector<std::string_view> lines;
  std::vector<std::uint64_t> line_numbers;
  std::vector<char> text;       ///< has the lines
  bool lines_are_plain = true;  ///< text::is_plain() is true for each line
};

/// A reader of one form of trace. Reader chooses one by the content of the input.
class Source {
 public:
  Source(std::unique_ptr<Input> input, DefectLog& log) : input_(std::move(input)), log_(log) {}
  virtual ~Source() = default;

  /// The next events; empty at the end. Events and labels are valid until the next call.
  virtual std::span<const Event> read() = 0;

  /// Two steps replace read(): read_core() reads the next events, up to the end of a block, and complete() later fills
  /// in the rest of the same events. Two threads may do the steps, each for one batch of events after the other. If a
  /// step throws, `step.count` is the number of good events.
  ///
  /// The caller owns the events' memory. Before the first step, all fields are defaults, or the events are earlier ones
  /// of the same block, without labels.
  virtual bool reads_in_steps() const { return false; }
  virtual void read_core(ReadStep&, std::span<Event>) {}
  virtual void complete(ReadStep&, std::span<Event>) {}

  virtual std::string_view line(std::size_t) const { return {}; }
  /// Exchanges the events of the last read() and their lines for earlier ones, which the caller does not need any more.
  /// After it only list_live_blocks() may be called until the next read(). Returns false if the source has no lines.
  virtual bool exchange(LineBatch&) { return false; }
  virtual std::uint64_t line_number(std::size_t) const { return 0; }

  /// The place of the i-th event of the last read(), the trace's event `number` (from 0).
  virtual std::string place(std::size_t, std::uint64_t number) const {
    return input_->name() + ": event " + std::to_string(number + 1);
  }

  virtual const std::vector<BlockStart>& blocks() {
    static const std::vector<BlockStart> none;
    return none;
  }

  /// Moves to the last position at or before an event at which reading can begin. Returns the number of the event at
  /// that position. If the input can only be read from its begin, does not move and returns nothing.
  virtual std::optional<std::uint64_t> go_to(std::uint64_t) { return std::nullopt; }

  /// The bytes of the file read so far, for a progress display.
  virtual std::uint64_t bytes_taken() const { return input_->file_taken(); }

  /// Whether the source knows the live blocks, as a Ledger that books its events does.
  virtual bool knows_blocks() const { return false; }
  /// The live block that each event of the last read() was given; tag 0 if none is known.
  virtual std::span<const LiveBlock> given() const { return {}; }
  /// The live blocks after the last read(), by rising tag.
  virtual std::vector<LiveBlock> list_live_blocks() const { return {}; }

  /// The live blocks before a keyframe, by rising tag. The keyframe is one of blocks(), but not the first.
  virtual std::vector<LiveBlock> list_live_before(const BlockStart&) { return {}; }

  /// The origins of these blocks, if the keyframe has them. If stacks are wanted, also reads the definitions before it.
  virtual std::optional<format::Origins> list_origins_before(const BlockStart&) { return std::nullopt; }

  /// Reads the definitions of all stacks if the input has an index. Returns whether it has one.
  virtual bool read_stacks() { return false; }

  const Header& header() const { return header_; }
  const StackTable& stacks() const { return stacks_; }
  const std::optional<Totals>& totals() const { return totals_; }
  const std::vector<RunStretch>& stretches() const { return totals_ ? totals_->stretches : stretches_; }
  bool truncated() const { return truncated_; }
  const Repairs& repairs() const { return repairs_; }

 protected:
  std::unique_ptr<Input> input_;
  DefectLog& log_;
  Header header_;
  StackTable stacks_;
  std::optional<Totals> totals_;
  std::vector<RunStretch> stretches_;  // of an input without totals
  bool truncated_ = false;
  Repairs repairs_;  // that the input states, or that are no defects (events of unknown kinds)
};

/// The state of a Reader. A tool that reads more forms than the library does passes its own function Choose.
class Reader::Impl {
 public:
  using Choose = std::function<std::unique_ptr<Source>(std::unique_ptr<Input>, const ReadOptions&, DefectLog&)>;

  Impl(std::unique_ptr<Input> input, ReadOptions options, const Choose& choose);

  std::span<const Event> read();
  /// The first step of reading (Source::read_core()), for a trace that is read from its begin.
  void read_core(ReadStep& step, std::span<Event> events);
  void seek(std::uint64_t event);
  bool truncated() const { return is_cut_ || source_->truncated(); }
  void accept_samples() { refuses_ = false; }

  ReadOptions options_;
  DefectLog log_;
  Input* input_;
  bool is_cut_ = false;
  std::unique_ptr<Source> source_;
  std::uint64_t first_ = 0;   // number of the first event of the source's last batch
  std::uint64_t next_ = 0;    // number of the first event of its next batch
  std::uint64_t wanted_ = 0;  // events before this one are dropped
  std::size_t dropped_ = 0;   // number of events dropped from the last batch

 private:
  void end();
  void refuse_samples() const;

  bool refuses_ = false;  // the trace is sampled, and the caller has not said that it knows of samples
};

/// Chooses among the forms of the library, text, .cmt and legacy .cmt, by the content of the input.
std::unique_ptr<Source> choose_source(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log);

}  // namespace cmt
