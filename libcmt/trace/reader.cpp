// The Reader chooses the form of an input by its first bytes:
//
//   .cmt     begins with the magic of format-spec/cmt.md.
//   legacy   begins with the record of an allocation: a number above 0, the byte 80, a number above 0. A number ends
//            at its first byte with the high bit set. Text has no such byte, and bytes two to eight of the magic have
//            none.
//   text     is every other input; an empty input is an empty text.

#include "cmt/reader.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <future>
#include <vector>

#include "libcmt/format/coding.h"
#include "libcmt/trace/file/cmt_source.h"
#include "libcmt/trace/file/legacy_source.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/lines/text_source.h"
#include "libcmt/trace/source.h"

namespace cmt {

std::unique_ptr<Source> choose_source(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log) {
  const std::string_view start = input->peek(format::longest_start);
  if (start.starts_with(format::magic)) return std::make_unique<CmtSource>(std::move(input), options, log);
  if (is_legacy(start)) return std::make_unique<LegacySource>(std::move(input), log);
  require_text(*input);
  return std::make_unique<TextSource>(std::move(input), options, log);
}

Reader::Impl::Impl(std::unique_ptr<Input> input, ReadOptions options, const Choose& choose)
    : options_(std::move(options)), log_(options_), input_(input.get()) {
  source_ = choose(std::move(input), options_, log_);
  refuses_ = source_->header().sampled() != 0;
}

void Reader::Impl::refuse_samples() const {
  if (refuses_) throw FormatError(input_->name(), "a sampled trace, which this program would take for a full one");
}

std::span<const Event> Reader::Impl::read() {
  refuse_samples();
  for (;;) {
    const std::span<const Event> events = source_->read();
    first_ = next_;
    next_ += events.size();
    dropped_ = 0;
    if (events.empty()) return end(), events;
    if (next_ <= wanted_) continue;
    dropped_ = wanted_ > first_ ? wanted_ - first_ : 0;
    assert(dropped_ < events.size());
    return events.subspan(dropped_);
  }
}

void Reader::Impl::read_core(ReadStep& step, std::span<Event> events) {
  refuse_samples();
  first_ = next_;
  dropped_ = 0;
  source_->read_core(step, events);
  assert(step.count <= events.size());
  next_ += step.count;
  if (step.block == nullptr) end();
}

/// Checks at the end of a compressed input whether it is complete.
void Reader::Impl::end() {
  if (is_cut_) return;
  const std::string missing = input_->missing();
  is_cut_ = !missing.empty();
  if (is_cut_ && options_.strict) throw FormatError(input_->name(), missing);
}

void Reader::Impl::seek(std::uint64_t event) {
  refuse_samples();
  if (const std::optional<std::uint64_t> at = source_->go_to(event)) {
    next_ = *at;
  } else if (event < next_) {
    throw FormatError(input_->name(), "cannot be read backwards: only a whole .cmt can, from a file");
  }
  wanted_ = event;
}

Reader::Reader(const std::string& path, ReadOptions options) : Reader(open_input(path), path, std::move(options)) {}

Reader::Reader(int fd, const std::string& path, ReadOptions options)
    : Reader(std::make_unique<Impl>(std::make_unique<Input>(fd, path), std::move(options), choose_source)) {}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

const Header& Reader::header() const { return impl_->source_->header(); }

void Reader::accept_samples() { impl_->accept_samples(); }

std::span<const Event> Reader::read() { return impl_->read(); }

std::uint64_t Reader::first_event() const { return impl_->first_ + impl_->dropped_; }

std::string Reader::place(std::size_t i) const { return impl_->source_->place(impl_->dropped_ + i, first_event() + i); }

const std::vector<BlockStart>& Reader::blocks() { return impl_->source_->blocks(); }

void Reader::seek(std::uint64_t event) { impl_->seek(event); }

std::string_view Reader::line(std::size_t i) const { return impl_->source_->line(impl_->dropped_ + i); }

std::uint64_t Reader::line_number(std::size_t i) const { return impl_->source_->line_number(impl_->dropped_ + i); }

const StackTable& Reader::stacks() const { return impl_->source_->stacks(); }

bool Reader::read_stacks() { return impl_->source_->read_stacks(); }

std::uint64_t Reader::defects() const { return impl_->log_.repairs().total(); }

Repairs Reader::repairs() const {
  Repairs all = impl_->log_.repairs();
  return all += impl_->source_->repairs();
}

bool Reader::truncated() const { return impl_->truncated(); }

const std::optional<Totals>& Reader::totals() const { return impl_->source_->totals(); }

const std::vector<RunStretch>& Reader::stretches() const { return impl_->source_->stretches(); }

std::uint64_t Reader::bytes_read() const { return impl_->source_->bytes_taken(); }

std::uint64_t Reader::bytes_total() const { return impl_->input_->file_size(); }

namespace {

/// The number of the first event of each part, and `unknown` as the end.
std::vector<std::uint64_t> bounds_of(Reader& reader, const ReadOptions& options) {
  std::vector<std::uint64_t> bounds;
  for (const BlockStart& block : reader.blocks()) {
    if (bounds.empty() || block.keyframe || !options.addresses) bounds.push_back(block.first_event);
  }
  if (bounds.empty()) bounds.push_back(0);
  bounds.push_back(unknown);
  assert(bounds.front() == 0 && std::is_sorted(bounds.begin(), bounds.end()));
  return bounds;
}

}  // namespace

std::size_t for_each_part(const std::string& path, const ReadOptions& options, unsigned threads,
                          const std::function<void(std::size_t part, std::span<const Event> events)>& visit) {
  Reader first(path, options);
  const std::vector<std::uint64_t> bounds = bounds_of(first, options);
  const std::size_t count = bounds.size() - 1;
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&](Reader& reader) {
    for (std::size_t part; (part = next++) < count;) {
      try {
        if (part != 0) reader.seek(bounds[part]);
        for (auto events = reader.read(); !events.empty(); events = reader.read()) {
          visit(part, events);
          if (reader.first_event() + events.size() >= bounds[part + 1]) break;
        }
      } catch (...) {
        errors[part] = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::future<void>> others;
  const std::size_t useful = path == "-" ? 1 : std::min<std::size_t>(threads, count);
  for (std::size_t i = 1; i < useful; ++i) {
    others.push_back(std::async(std::launch::async, [&] {
      Reader own(path, options);
      work(own);
    }));
  }
  work(first);
  for (std::future<void>& other : others) other.get();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return count;
}

}  // namespace cmt
