#include "cmt/writer.h"

#include <string>

#include "cmt/text.h"
#include "libcmt/text/format.h"
#include "libcmt/text/parser.h"
#include "libcmt/text/stack_lines.h"
#include "libcmt/trace/cmt_sink.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/ledger.h"
#include "libcmt/trace/sink.h"

namespace cmt {
namespace {

/// Writes the canonical text.
class TextSink : public Sink {
 public:
  TextSink(Output& output, const Header& header)
      : output_(output), has_end_(header.has_header || !header.metadata.empty()) {
    text::append_header(buffer_, header);
  }

  void add_event(const BookedEvent& booked) override {
    Event event = booked.event;
    event.stack = event.stack != 0 ? stacks_.append_stack(buffer_, event.stack) : 0;
    append_line(buffer_, event);
    buffer_ += '\n';
    if (buffer_.size() > buffer_size) flush();
  }

  std::size_t room() const override { return EventBatch::capacity; }

  void use_stacks(const StackTable& stacks) override { stacks_.use(stacks); }
  StackId stack_in_file(StackId stack) const override { return stacks_.node_number(stack); }

  void flush() override {
    output_.write(buffer_);
    buffer_.clear();
  }

  void finish(const Totals& totals) override {
    stacks_.append_end(buffer_);
    if (has_end_) text::append_end(buffer_, totals.repairs, totals.truncated);
    flush();
  }

 private:
  static constexpr std::size_t buffer_size = 64 * 1024;

  Output& output_;
  bool has_end_;
  text::StackLineWriter stacks_;
  std::string buffer_;
};

}  // namespace

class Writer::Impl {
 public:
  Impl(int fd, Header header, const WriteOptions& options)
      : output_(fd), sink_(make_sink(output_, std::move(header), options, ledger_)) {}

  Output output_;
  Ledger ledger_;
  std::unique_ptr<Sink> sink_;
};

std::unique_ptr<Sink> make_sink(Output& output, Header header, const WriteOptions& options, const BlockKeeper& keeper) {
  if (options.format == Format::text) return std::make_unique<TextSink>(output, header);
  return std::make_unique<CmtSink>(output, std::move(header), options, keeper);
}

Writer::Writer(int fd, Header header, WriteOptions options)
    : impl_(std::make_unique<Impl>(fd, std::move(header), options)) {}

Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

bool Writer::add(const Event& event) {
  if (event.label.size() > text::label_limit || !is_known(event.kind)) return false;
  if (tells_pages(event.kind) && event.old_tag == 0) return false;
  const Ledger::Entry entry = impl_->ledger_.book(event);
  if (entry.accepted) impl_->sink_->add_event({event, entry.old});
  return entry.accepted;
}

void Writer::use_stacks(const StackTable& stacks) { impl_->sink_->use_stacks(stacks); }

void Writer::flush() { impl_->sink_->flush(); }

void Writer::finish(const Repairs& repairs, bool truncated) {
  impl_->ledger_.totals().repairs = repairs;
  impl_->ledger_.totals().truncated = truncated;
  impl_->sink_->finish(impl_->ledger_.totals());
}

const Totals& Writer::totals() const { return impl_->ledger_.totals(); }

std::uint64_t Writer::bytes_written() const { return impl_->output_.offset(); }

}  // namespace cmt
