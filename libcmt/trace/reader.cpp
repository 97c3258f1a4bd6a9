// The facade over the layers: what an input is follows from its first bytes.
//
//   .cmt     begins with the magic of format-spec/cmt.md
//   legacy   begins with the record of an allocation: a number above 0, the byte 80, a number above 0, each number
//   ending
//            at its first byte with the high bit set. Text has no such byte, and the magic has none at its second to
//            eighth place
//   text     is what is left; an empty input is an empty text

#include "cmt/reader.h"

#include "format/legacy.h"
#include "format/wire.h"
#include "trace/cmt_source.h"
#include "trace/input.h"
#include "trace/legacy_source.h"
#include "trace/text_source.h"

namespace cmt {

class Reader::Impl {
 public:
  Impl(int fd, const std::string& path, ReadOptions options)
      : options_(std::move(options)), log_(options_), source_(open(std::make_unique<Input>(fd, path))) {}

  std::unique_ptr<Source> open(std::unique_ptr<Input> input) {
    input_ = input.get();
    const std::string_view start = input->peek(format::longest_start);
    if (start.starts_with(format::magic)) return std::make_unique<CmtSource>(std::move(input), options_, log_);
    if (format::is_legacy(start)) return std::make_unique<LegacySource>(std::move(input), log_);
    return std::make_unique<TextSource>(std::move(input), log_);
  }

  ReadOptions options_;
  DefectLog log_;
  Input* input_ = nullptr;
  std::unique_ptr<Source> source_;
};

Reader::Reader(const std::string& path, ReadOptions options) : Reader(open_input(path), path, std::move(options)) {}

Reader::Reader(int fd, const std::string& path, ReadOptions options)
    : impl_(std::make_unique<Impl>(fd, path, std::move(options))) {}

Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

const Header& Reader::header() const { return impl_->source_->header(); }

std::span<const Event> Reader::read() { return impl_->source_->read(); }

std::string_view Reader::line(std::size_t i) const { return impl_->source_->line(i); }

std::uint64_t Reader::defects() const { return impl_->log_.count(); }

std::uint64_t Reader::repairs() const { return impl_->log_.count() + impl_->source_->repairs(); }

bool Reader::truncated() const { return impl_->source_->truncated(); }

const std::optional<Totals>& Reader::totals() const { return impl_->source_->totals(); }

std::uint64_t Reader::bytes_read() const { return impl_->input_->offset(); }

std::uint64_t Reader::bytes_total() const { return impl_->input_->size(); }

}  // namespace cmt
