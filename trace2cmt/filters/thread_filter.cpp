// The filter of --thread. It knows the live blocks of the wanted threads, so that frees by other threads stay.

#include <stdexcept>

#include "libcmt/block_table.h"
#include "toolkit/command/command_line.h"
#include "trace2cmt/filters/filter.h"

namespace cmt::trace2cmt {
namespace {

class ThreadFilter : public Filter {
 public:
  ThreadFilter(std::set<std::uint32_t> threads, std::string path)
      : threads_(std::move(threads)), path_(std::move(path)), unseen_(threads_) {}

  void filter(const cmt::Event& event, const Emit& emit) override {
    if (!unseen_.empty()) unseen_.erase(event.thread);
    if (event.tag != 0) first_tag_ = std::min(first_tag_, event.tag);
    if (event.kind == cmt::Kind::mark || event.kind == cmt::Kind::sampling_interval) return emit(event);
    if (cmt::is_of_pool(event.kind)) return filter_pool(event, emit);
    if (cmt::is_about_pages(event.kind) && blocks_.find(event.old_tag) != nullptr) return emit(event);
    threads_.contains(event.thread) ? filter_own(event, emit) : filter_other(event, emit);
  }

  void finish(const Emit&) override {
    if (!unseen_.empty() && !path_.empty())
      throw std::runtime_error(command::input_name(path_) + ": no event is of thread " +
                               std::to_string(*unseen_.begin()) + " (--thread)");
  }

 private:
  struct OwnBlock {
    cmt::Tag tag = 0;
  };

  /// The numbers of pools' blocks are no tags, so their table is another one.
  void filter_pool(const cmt::Event& event, const Emit& emit) {
    const bool makes = event.kind == cmt::Kind::pool_malloc;
    if (makes && first_pool_block_ == 0) first_pool_block_ = event.pool_block;
    if (makes && !threads_.contains(event.thread)) return;
    if (makes) pool_blocks_.insert({event.pool_block});
    const bool is_older = threads_.contains(event.thread) && event.pool_block < first_pool_block_;
    if (makes || pool_blocks_.erase(event.pool_block) || is_older) emit(event);
  }

  void filter_own(cmt::Event event, const Emit& emit) {
    const bool is_of_others = event.old_tag >= first_tag_ && blocks_.find(event.old_tag) == nullptr;
    if (is_of_others) {
      if (event.tag == 0) return;
      event.old_tag = event.old_address = 0;
    }
    if (event.ends_block()) blocks_.erase(event.old_tag);
    if (event.tag != 0) blocks_.insert({event.tag});
    emit(event);
  }

  void filter_other(const cmt::Event& event, const Emit& emit) {
    if (!event.ends_block() || !blocks_.erase(event.old_tag)) return;
    if (!event.makes_block()) return emit(event);
    emit({.kind = cmt::Kind::free,
          .thread = event.thread,
          .old_tag = event.old_tag,
          .old_address = event.old_address,
          .time_ns = event.time_ns,
          .stack = event.stack});
  }

  std::set<std::uint32_t> threads_;
  std::string path_;
  std::set<std::uint32_t> unseen_;                  // threads without an event so far
  cmt::BlockTable<OwnBlock> blocks_, pool_blocks_;  // that live, of the chosen threads
  std::uint64_t first_pool_block_ = 0;              // of all threads
  cmt::Tag first_tag_ = cmt::unknown;
};

}  // namespace

std::unique_ptr<Filter> make_thread_filter(std::set<std::uint32_t> threads, const std::string& path) {
  return std::make_unique<ThreadFilter>(std::move(threads), path);
}

}  // namespace cmt::trace2cmt
