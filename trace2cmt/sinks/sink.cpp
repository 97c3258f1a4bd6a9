// The list of output forms, and the sinks for .cmt and text, which use the library's writers.

#include "trace2cmt/sinks/sink.h"

#include <algorithm>
#include <array>

#include "cmt/writer.h"
#include "libcmt/trace/writer/booked_writer.h"

namespace cmt::trace2cmt {

// The forms that other files of this folder define.
extern const OutputForm legacy_form, rep_form, csv_form, parquet_form, heaptrack_form;

namespace {

class WriterSink : public Sink {
 public:
  WriterSink(SinkSettings settings, cmt::Format format)
      : writer_(settings.fd, std::move(settings.header),
                {.format = format, .level = settings.level, .threads = settings.jobs}) {}

  bool add(const cmt::Event& event) override { return writer_.add(event); }
  void finish(const cmt::Repairs& repairs, bool truncated) override {
    writer_.finish(repairs, truncated, std::move(stretches_), samples_lost_);
  }
  void use_stretches(const std::vector<cmt::RunStretch>& stretches) override { stretches_ = stretches; }
  void use_samples_lost(std::uint64_t samples) override { samples_lost_ = samples; }
  const cmt::Totals& totals() const override { return writer_.totals(); }
  void use_stacks(const cmt::StackTable& stacks) override { writer_.use_stacks(stacks); }

 private:
  cmt::Writer writer_;
  std::vector<cmt::RunStretch> stretches_;
  std::uint64_t samples_lost_ = 0;
};

/// The same for a source that knows the live blocks.
class BookedSink : public Sink {
 public:
  BookedSink(SinkSettings settings, cmt::Format format)
      : writer_(settings.fd, std::move(settings.header),
                {.format = format, .level = settings.level, .threads = settings.jobs}, *settings.source) {}

  bool add(const cmt::Event&) override { return false; }
  bool takes_booked() const override { return true; }
  void add_booked(std::span<const cmt::Event> events) override { writer_.add(events); }
  void finish(const cmt::Repairs& repairs, bool truncated) override {
    writer_.finish(repairs, truncated, std::move(stretches_), samples_lost_);
  }
  void use_stretches(const std::vector<cmt::RunStretch>& stretches) override { stretches_ = stretches; }
  void use_samples_lost(std::uint64_t samples) override { samples_lost_ = samples; }
  const cmt::Totals& totals() const override { return writer_.totals(); }
  void use_stacks(const cmt::StackTable& stacks) override { writer_.use_stacks(stacks); }

 private:
  cmt::BookedWriter writer_;
  std::vector<cmt::RunStretch> stretches_;
  std::uint64_t samples_lost_ = 0;
};

template <cmt::Format format>
std::unique_ptr<Sink> make_writer_sink(SinkSettings settings) {
  if (settings.source != nullptr) return std::make_unique<BookedSink>(std::move(settings), format);
  return std::make_unique<WriterSink>(std::move(settings), format);
}

}  // namespace

std::span<const OutputForm> output_forms() {
  static const std::array forms{OutputForm{"cmt", "a .cmt", make_writer_sink<cmt::Format::cmt>, true, true},
                                OutputForm{"text", "", make_writer_sink<cmt::Format::text>, true},
                                legacy_form,
                                rep_form,
                                csv_form,
                                parquet_form,
                                heaptrack_form};
  return forms;
}

const OutputForm* find_output_form(std::string_view name) {
  const auto forms = output_forms();
  const auto found =
      std::find_if(forms.begin(), forms.end(), [&](const OutputForm& form) { return form.name == name; });
  return found == forms.end() ? nullptr : &*found;
}

}  // namespace cmt::trace2cmt
