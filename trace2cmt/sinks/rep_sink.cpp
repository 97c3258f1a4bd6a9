// Writes a trace for the malloc lab in Bryant and O'Hallaron, "Computer Systems: A Programmer's Perspective":
//
//     4096     suggested heap size: the peak of live bytes; the driver ignores it
//     1        ids
//     3        operations
//     1        weight
//
//     a 0 8    malloc: id, size
//     r 0 16   realloc
//     f 0      free
//
// An id names a block through all its reallocs and is never used again. Ids have no gaps, which the driver checks. The
// driver's numbers are of type int. A block alive at the end is freed there, as in the lab's "balanced" traces. The
// counts in the header are known last, so the operations are kept in a temporary file until then.

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <vector>

#include "cmt/error.h"
#include "libcmt/block_table.h"
#include "toolkit/process/proc_file.h"
#include "trace2cmt/sinks/plain_calls.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::uint64_t int_max = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t weight = 1;

class RepSink : public LedgerSink {
 public:
  RepSink(int fd, Say say) : fd_(fd), say_(std::move(say)) {}

  void finish(const cmt::Repairs&, bool) override {
    free_live_blocks();
    operations_.flush();
    write_file();
    calls_.report_losses("rep", say_);
  }

 private:
  struct NamedBlock {
    cmt::Tag tag = 0;
    std::uint64_t id = 0;
  };

  void write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) override;
  void put_operation(char operation, std::uint64_t id, std::uint64_t size);
  void free_live_blocks();
  void write_file();

  int fd_;
  Say say_;
  PlainCalls calls_{{.most = int_max}};
  cmt::BlockTable<NamedBlock> blocks_;  // the live blocks
  std::uint64_t id_count_ = 0;
  std::uint64_t operation_count_ = 0;
  cmt::process::Fd temporary_{cmt::open_temporary_file()};
  BufferedOutput operations_{temporary_.get(), "writing a temporary file"};
};

void RepSink::write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  const PlainCall call = calls_.nearest(event, old != nullptr);
  assert((call.kind != PlainCall::Kind::realloc && call.kind != PlainCall::Kind::free) ||
         blocks_.find(call.old_tag) != nullptr);
  switch (call.kind) {
    case PlainCall::Kind::none:
      return;
    case PlainCall::Kind::malloc:
      blocks_.insert({call.tag, id_count_});
      return put_operation('a', id_count_++, call.size);
    case PlainCall::Kind::realloc: {
      const std::uint64_t id = blocks_.erase(call.old_tag)->id;
      blocks_.insert({call.tag, id});
      return put_operation('r', id, call.size);
    }
    case PlainCall::Kind::free:
      return put_operation('f', blocks_.erase(call.old_tag)->id, 0);
  }
}

void RepSink::put_operation(char operation, std::uint64_t id, std::uint64_t size) {
  if (++operation_count_ > int_max) throw cmt::FormatError("", "more operations than a .rep can number");
  std::string& out = operations_.text();
  out += operation;
  out += ' ';
  out += std::to_string(id);
  if (operation != 'f') out += ' ' + std::to_string(size);
  out += '\n';
  operations_.flush_if_full();
}

void RepSink::free_live_blocks() {
  std::vector<std::uint64_t> ids;
  blocks_.for_each([&](const NamedBlock& block) { ids.push_back(block.id); });
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) {
    calls_.count(Loss::alive_at_end);
    put_operation('f', id, 0);
  }
}

void RepSink::write_file() {
  assert(blocks_.size() <= id_count_ && id_count_ <= operation_count_);
  cmt::Output output(fd_);
  for (const std::uint64_t number :
       {std::min(totals().peak_live_bytes, int_max), id_count_, operation_count_, weight}) {
    output.write(std::to_string(number) + "\n");
  }
  lseek(temporary_.get(), 0, SEEK_SET);
  output.copy_from(temporary_.get(), "a temporary file");
}

std::unique_ptr<Sink> make_rep_sink(SinkSettings settings) {
  return std::make_unique<RepSink>(settings.fd, std::move(settings.say));
}

}  // namespace

extern const OutputForm rep_form{"rep", "", make_rep_sink};

}  // namespace cmt::trace2cmt
