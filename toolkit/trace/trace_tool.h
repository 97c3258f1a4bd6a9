/// The outline that lifetimes and overhead share. Both read one trace and either annotate its lines or summarise it, as
/// text, JSON, CSV or a picture. A tool adds options of its own, an annotator, and a described summary with to_text(),
/// to_csv() and to_picture() in its namespace.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/heap/clock.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/complaints.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/fields.h"
#include "toolkit/picture/picture.h"
#include "toolkit/terminal/progress.h"
#include "toolkit/trace/late_start.h"
#include "toolkit/trace/pools.h"
#include "toolkit/trace/stages.h"
#include "toolkit/trace/trace_batch.h"

namespace cmt::trace {

/// The options of both tools.
struct Options {
  enum class Form { text, json, csv };

  std::string tool;         ///< begins each message
  bool summarises = false;  ///< rather than annotates
  std::string path = "-";
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  Form form = Form::text;  ///< of a summary
  bool leaks = false;
  bool totals = false;
  bool strict = false;
  std::string plot{};      ///< the picture's file; empty: no picture
  bool prints = true;      ///< the summary too, or only a picture
  unsigned jobs = 1;       ///< threads that may work at once
  std::string pool{};      ///< the pool whose blocks are counted; empty: malloc's are
  bool says_pools = true;  ///< a line on each pool that is not counted; false: of a trace that is read again

  /// The name of what is counted, for a report: a name of the trace's file, and the pool.
  std::string name_with_pool(const std::string& name) const { return pool.empty() ? name : name + ", pool " + pool; }
};

/// The options of both tools, and those that only one has.
std::vector<command::Option> known_options(std::vector<command::Option> own);

/// All options but the path. `annotation_only` are those that do not go with a summary. Throws UsageError.
Options parse_options(const std::string& tool, const command::CommandLine& line,
                      std::initializer_list<const char*> annotation_only);

/// The trace that the options name. The first of its defects go to standard error, and a line where it breaks off.
class Trace {
 public:
  /// Borrows `options`. `addresses` and `stacks`: whether events have them. Throws FormatError where ages are to be
  /// counted in time and the trace has none, or if the trace is sampled and `samples` refuses it.
  explicit Trace(const Options& options, bool addresses = true, bool stacks = false,
                 command::Samples samples = command::Samples::refused);

  /// To be called before the first event is read. Returns where for_each() goes on for this slice, or nothing for the
  /// begin. A strict reader and one of standard input read everything.
  std::optional<LateStart> start_late(const SliceRange& range);

  /// Calls `visit` with every event, one after the other. With several jobs other threads read ahead. They do not if
  /// `visit` returns a bool: where that is false, the rest is not read.
  template <class Visit>
  void for_each(Visit visit) {
    if constexpr (std::is_same_v<decltype(visit(std::declval<const Event&>())), bool>) {
      visit_alone(visit);
    } else if (options_.jobs > 1) {
      visit_in_stages([](const Event&, bool) {}, visit);
    } else {
      visit_alone([&visit](const Event& event) { return visit(event), true; });
    }
  }

  /// The same for all events. If the trace is a .cmt, `fetch(event, is_near)` is called twice before `visit`: some
  /// events ahead, and nearer to it. It can fetch memory into the cache.
  template <class Fetch, class Visit>
  void for_each_ahead(Fetch fetch, Visit visit) {
    if (header().format != Format::cmt) return for_each(visit);
    visit_in_stages(fetch, visit);
  }

  /// With several jobs, for_each() of all events calls `call` after each batch that was read. Another thread makes the
  /// call, but not while the tables of stacks and of totals change.
  void call_while_reading(std::function<void()> call) { call_while_reading_ = std::move(call); }

  /// For callers that read in batches.
  BatchReader& batches() { return batches_ ? *batches_ : batches_.emplace(reader_); }

  /// Calls `fetch` and `visit` with the index of each event of a batch, and reports the batch's defects in between.
  template <class Fetch, class Visit>
  void visit_batch(const TraceBatch& batch, Fetch fetch, Visit visit) {
    constexpr std::size_t farthest = 48, far = 20, near = 8;  // events
    assert(visited_ == nullptr);
    is_empty_ &= batch.events.empty();
    show_progress(batch.bytes_read, batch.bytes_total);
    visited_ = &batch;
    defects_reported_ = 0;
    const std::size_t count = batch.events.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (i + farthest < count) {
        __builtin_prefetch(&batch.events[i + farthest]);  // from another thread's cache
        __builtin_prefetch(&batch.events[i + farthest].stack);
      }
      if (i + far < count) fetch(batch.events[i + far], false);
      if (i + near < count) fetch(batch.events[i + near], true);
      if (defects_reported_ < batch.defects.size()) report_defects(i);
      current_ = i;
      pools_.count(batch.events[i]);
      visit(i);
    }
    report_defects(count);
    visited_ = nullptr;
  }

  /// To be called before the standard output is written while events are read. Shows no progress if it is no file.
  void begin_output();

  /// To be called when all was read.
  void say_what_is_missing() const;

  command::Complaints& complaints() { return complaints_; }
  const Header& header() const { return reader_.header(); }
  const StackTable& stacks() const { return reader_.stacks(); }
  bool truncated() const { return reader_.truncated(); }
  /// Whether it may end before its program: it breaks off, is a part of a recording, or has kept events, which are also
  /// written while the program runs. Then it lacks the last touched pages of live blocks. Known at the end.
  bool lacks_last_touches() const;
  /// As command::recorded_ns(). Known at the end.
  std::uint64_t recorded_ns() const { return command::recorded_ns(header(), reader_.stretches()); }
  /// The slices that a part of a recording is (format-spec/text.md, "slice"). Empty: the trace is whole. The caller
  /// must not count the blocks from before it as allocated: say_what_is_missing() then omits that they are.
  std::string part_slices();
  /// Complete at the end.
  std::uint64_t lost_events() const { return command::lost_events(header(), reader_.repairs()); }
  /// The pools of the events that were read so far.
  const Pools& pools() const { return pools_; }
  /// The totals of a whole .cmt. Complete at the end.
  const std::optional<Totals>& totals() const { return reader_.totals(); }

 private:
  Reader open(bool addresses, bool stacks, command::Samples samples);
  void show_progress(std::uint64_t bytes, std::uint64_t all) {
    if (progress_ && progress_->due(all)) progress_->show(name(), bytes, all);
  }
  void say(const std::string& message) const {
    if (progress_) progress_->clear();
    command::complain(options_.tool, message);
  }
  std::string place() const;
  std::string name() const;
  std::string missing_end() const;
  bool begins_late() const;

  template <class Visit>
  void visit_alone(Visit visit) {
    for (auto events = reader_.read(); !events.empty(); events = reader_.read()) {
      is_empty_ = false;
      show_progress(reader_.bytes_read(), reader_.bytes_total());
      for (std::size_t i = 0; i < events.size(); ++i) {
        pools_.count(events[current_ = i]);
        const Event* const event = pools_.view(events[i]);
        if (event == nullptr || visit(*event)) continue;
        if (progress_) progress_->clear();
        return;
      }
    }
    say_what_is_missing();
  }

  template <class Fetch, class Visit>
  void visit_in_stages(Fetch fetch, Visit visit) {
    const unsigned threads = std::min(options_.jobs, 2U);  // a third would take what the other two have in their caches
    std::vector<TraceBatch> places(Stages::places_for(threads));
    BatchReader& reader = batches();
    const auto call_after = [&](bool more, bool changes_tables) {
      if (changes_tables && call_while_reading_) call_while_reading_();
      return more;
    };
    const bool in_steps = reader.reads_in_steps();
    Stages stages({{true, [&](std::size_t place) { return call_after(reader.begin(places[place]), !in_steps); }, 1},
                   {true, [&](std::size_t place) { return call_after(reader.complete(places[place]), in_steps); }, 1},
                   {true,
                    [&](std::size_t place) {
                      const TraceBatch& batch = places[place];
                      visit_batch(batch, fetch, [&](std::size_t i) {
                        if (const Event* const event = pools_.view(batch.events[i])) visit(*event);
                      });
                      if (batch.error) std::rethrow_exception(batch.error);
                      return true;
                    },
                    0}},
                  places.size());
    stages.run(threads);
    say_what_is_missing();
  }

  void report_defects(std::size_t before);

  const Options& options_;
  std::unique_ptr<terminal::ProgressLine> progress_;  // null: the output goes to the terminal meanwhile
  bool is_empty_ = true;                              // as far as it was read
  bool knows_part_ = false;                           // the caller counts no blocks from before it as allocated
  std::size_t current_ = 0;                           // the event that is visited, in its batch
  const TraceBatch* visited_ = nullptr;               // null: the reader's own
  std::size_t defects_reported_ = 0;                  // of this batch
  Pools pools_;
  std::function<void()> call_while_reading_;
  std::optional<BatchReader> batches_;
  command::Complaints complaints_;
  Reader reader_;
  std::function<Reader()> reopen_;
};

/// Whether a person who asked for no form sees the summary. The trace is a .cmt, and the output is a terminal. None of
/// the options `asks`, which are about annotated lines, is given. Says how to get those lines.
bool prefers_summary(const Options& options, const command::CommandLine& line, std::initializer_list<const char*> asks);

/// The first block that a trace makes. A lower tag is of a block from before the trace, whose end is no defect. The end
/// of an unknown block with a higher tag is one: the block has ended already.
class FirstTag {
 public:
  void note(Tag tag) {
    if (tag_ == 0) tag_ = tag;
  }
  bool is_made_here(Tag tag) const { return tag_ != 0 && tag >= tag_; }

 private:
  Tag tag_ = 0;
};

/// The functions of a tool that write its summary for people, for spreadsheets and as a picture.
template <class Summary>
struct SummaryForms {
  std::string (*text)(const Summary&);
  std::string (*csv)(const Summary&);
  picture::Picture (*picture)(const Summary&);
};

/// Writes a summary to standard output in the form asked for, and as a picture to the file of --plot. The constructor
/// opens that file, before the work begins.
class SummaryOutput {
 public:
  explicit SummaryOutput(const Options& options);

  bool draws() const { return picture_.has_value(); }

  template <class Summary>
  void write(const Summary& summary, const SummaryForms<Summary>& forms) {
    if (picture_) write_picture(forms.picture(summary), output::json_text(summary));
    if (options_.prints) command::print(formatted(summary, forms));
  }

 private:
  template <class Summary>
  std::string formatted(const Summary& summary, const SummaryForms<Summary>& forms) const {
    if (options_.form == Options::Form::json) return output::json_text(summary);
    return options_.form == Options::Form::csv ? forms.csv(summary) : forms.text(summary);
  }
  void write_picture(const picture::Picture& picture, const std::string& numbers);

  const Options& options_;
  std::optional<picture::PictureFile> picture_;
};

}  // namespace cmt::trace
