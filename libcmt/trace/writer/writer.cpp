// A Writer is a ledger, which refuses contradictions, before the sink of the wanted form.

#include "cmt/writer.h"

#include <string>
#include <utility>

#include "libcmt/text/parser.h"
#include "libcmt/trace/file/cmt_sink.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/lines/text_sink.h"
#include "libcmt/trace/writer/ledger.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt {
class Writer::Impl {
 public:
  Impl(int fd, Header header, const WriteOptions& options)
      : output_(fd), interval_(header.sampled()), sink_(make_sink(output_, std::move(header), options, ledger_)) {}

  /// Whether the events before allow this event of sampling.
  bool takes_sampling(const Event& event) {
    if (interval_ == 0) return false;
    if (event.kind == Kind::unsample) return true;
    if (event.size < interval_) return false;
    interval_ = event.size;
    return true;
  }

  Output output_;
  std::uint64_t interval_;  // of sampling; 0: the trace has all blocks
  Ledger ledger_;
  std::unique_ptr<Sink> sink_;
};

std::unique_ptr<Sink> make_sink(Output& output, Header header, const WriteOptions& options,
                                const LiveBlockSource& live) {
  if (header.find("sampled")) {
    if (header.sampled() == 0) throw FormatError("", "the key sampled is not a number above 0");
    if (options.format == Format::text) throw FormatError("", "a sampled trace has no text form");
  }
  if (options.format == Format::text) return std::make_unique<TextSink>(output, header, options);
  return std::make_unique<CmtSink>(output, std::move(header), options, live);
}

Writer::Writer(int fd, Header header, WriteOptions options)
    : impl_(std::make_unique<Impl>(fd, std::move(header), options)) {}

Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

bool Writer::add(const Event& event) {
  if (event.label.size() > text::label_limit || !is_known(event.kind)) return false;
  if (is_about_pages(event.kind) && event.old_tag == 0) return false;
  const KindTraits& kind = traits(event.kind);
  if ((event.tag != 0 && !kind.allocates) || (event.old_tag != 0 && !kind.is_given())) return false;
  if (is_of_sampling(event.kind) && !impl_->takes_sampling(event)) return false;
  const Ledger::Entry entry = impl_->ledger_.book(event);
  if (entry.accepted) impl_->sink_->add_event({event, entry.old});
  return entry.accepted;
}

void Writer::use_stacks(const StackTable& stacks) { impl_->sink_->use_stacks(stacks); }

void Writer::flush() { impl_->sink_->flush(); }

void Writer::finish(const Repairs& repairs, bool truncated, std::vector<RunStretch> stretches,
                    std::uint64_t samples_lost) {
  impl_->ledger_.totals().repairs = repairs;
  impl_->ledger_.totals().truncated = truncated;
  impl_->ledger_.totals().stretches = std::move(stretches);
  impl_->ledger_.totals().samples_lost = samples_lost;
  impl_->sink_->finish(impl_->ledger_.totals());
}

const Totals& Writer::totals() const { return impl_->ledger_.totals(); }

std::uint64_t Writer::bytes_written() const { return impl_->output_.offset(); }

}  // namespace cmt
