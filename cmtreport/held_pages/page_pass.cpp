// Reads a trace once more, by address, and charges its pages to functions and phases.
#include "cmtreport/held_pages/page_pass.h"

#include <tsl/robin_map.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <map>
#include <unordered_map>
#include <utility>

#include "analysis/places/summarise.h"
#include "libcmt/block_table.h"
#include "libcmt/number_hash.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/complaints.h"
#include "toolkit/command/open_trace.h"

namespace cmt::report {
namespace {

using analysis::KeyId;
using analysis::PageUse;
using analysis::PageUses;

constexpr int page_shift = 12;

/// The same number as the report has marks.
constexpr std::size_t phases_max = 1000;

/// The key of each live block. Memory: some 25 bytes a live block.
class KeysOfBlocks {
 public:
  void count_event(const Event& event) {
    if (event.kind == Kind::mark) begin_phase(std::string(event.label));
    if (event.ends_block() && event.old_address != 0) blocks_.erase(event.old_address);
    if (!event.makes_block() || event.address == 0) return;
    const auto next = static_cast<KeyId>(keys_.size());
    const auto [found, is_new] = ids_.try_emplace(std::uint64_t{event.stack} << 32 | phase_, next);
    if (is_new) keys_.push_back({event.stack, phase_});
    const KeyId key = found->second;
    if (Block* const there = blocks_.find(event.address))
      there->key = key;  // the trace has no event that ended this one
    else
      blocks_.insert({event.address, key});
  }

  KeyId of_block(const heap::PlacedBlock& block) {
    const Block* const found = blocks_.find(block.address);
    return found == nullptr ? 0 : found->key;
  }

  std::vector<PagePass::Key> keys() { return keys_; }
  std::vector<std::string> phases() { return phases_; }

 private:
  struct Block {
    std::uint64_t address = 0;
    KeyId key = 0;
  };

  /// Marks of one label are one phase. Beyond phases_max they count with what was made before the first mark.
  void begin_phase(std::string label) {
    if (phases_.size() > phases_max && !phase_ids_.contains(label)) {
      phase_ = 0;
      return;
    }
    const auto next = static_cast<std::uint32_t>(phases_.size());
    const auto [found, is_new] = phase_ids_.try_emplace(std::move(label), next);
    if (is_new) phases_.push_back(found->first);
    phase_ = found->second;
  }

  ScatteredBlocks<Block, &Block::address> blocks_;
  tsl::robin_map<std::uint64_t, KeyId, NumberHash> ids_;  // by stack and phase
  std::vector<PagePass::Key> keys_{{}};                   // 0: of a block that is not known
  std::unordered_map<std::string, std::uint32_t> phase_ids_;
  std::vector<std::string> phases_{""};
  std::uint32_t phase_ = 0;
};

/// Calls `show` with the bytes that have been read, and all bytes, after each batch.
template <class Show>
std::optional<PagePass> read_pages(const std::string& path, const std::stop_token& stop, Show show) {
  Reader reader = command::open_trace(path, {.stacks = true});
  const Header& header = reader.header();
  command::Complaints unheard(false, [](const std::string&) {});
  analysis::Summariser summariser(path, page_shift, header.has_usable, unheard, header.touched_min());
  KeysOfBlocks keys;
  PagePass pass;
  const auto walk_at = [&keys](PagePass::Moment& moment) {
    return [&keys, &moment](const heap::AddressIndex& live, const analysis::MemoryUse& now) {
      moment = {.event = now.event, .time_ns = now.time_ns, .pages = now.pages, .allocated_bytes = now.allocated_bytes};
      moment.uses = analysis::find_page_uses(live, page_shift, now.old_before(),
                                             [&keys](const heap::PlacedBlock& block) { return keys.of_block(block); });
    };
  };
  summariser.call_at_holders(walk_at(pass.most_unused));
  PagePass::Moment found;  // and perhaps while the program ends
  summariser.call_at_separable(walk_at(found));
  const auto has_address = [](const Event& event) {
    return (!event.makes_block() || event.address != 0) && (!event.ends_block() || event.old_address != 0);
  };
  for (auto batch = reader.read(); !batch.empty() && !stop.stop_requested(); batch = reader.read()) {
    for (const Event& event : batch) {
      if (!has_address(event)) return std::nullopt;
      keys.count_event(event);
      summariser.count_event(event);
      if (found.event == 0 || summariser.now().allocated_bytes <= found.allocated_bytes + found.allocated_bytes / 100)
        continue;
      pass.most_separable = std::move(found);
      found = {};
    }
    show(reader.bytes_read(), reader.bytes_total());
  }
  pass.summary = summariser.finish(reader.truncated());
  const std::vector<analysis::TopBlock*> blocks = pass.summary.blocks_to_name();
  if (!blocks.empty() && !stop.stop_requested()) analysis::find_origins(blocks, path, 1);
  pass.keys = keys.keys();
  pass.phases = keys.phases();
  return pass;
}

}  // namespace

PageReading::PageReading(const std::string& path)
    : path_(path), line_(STDERR_FILENO), thread_([this](const std::stop_token& stop) {
        try {
          pass_ = read_pages(path_, stop, [this](std::uint64_t bytes, std::uint64_t all) {
            bytes_read_ = bytes;
            bytes_total_ = all;
          });
        } catch (...) {
          error_ = std::current_exception();
        }
        ended_.set_value();
      }) {}

std::optional<PagePass> PageReading::finish() {
  constexpr std::chrono::milliseconds often(100);
  const std::future<void> ended = ended_.get_future();
  while (ended.wait_for(often) != std::future_status::ready)
    line_.show("the pages of " + command::input_name(path_), bytes_read_, bytes_total_);
  line_.clear();
  thread_.join();
  if (error_) std::rethrow_exception(error_);
  return std::move(pass_);
}

void name_blocks(HeldPages& pages, PagePass& pass, const Recording& recording) {
  const std::vector<CallId>& node_of = recording.traces().front().node_of_key;
  const CallTree& tree = recording.tree();
  for (analysis::TopBlock* const block : pass.summary.blocks_to_name()) {
    CallId node = block->stack != 0 && block->stack < node_of.size() ? node_of[block->stack] : CallTree::left_out;
    if (node == CallTree::left_out) continue;
    node = tree.charged(node);
    const std::vector<analysis::HeapTop>& heaps = pass.summary.heap_tops.heaps;
    if (!heaps.empty() && block == &heaps.front().highest.front()) pages.heap_top_node = node;
    if (block == &pass.summary.mmap_threshold.first_block) pages.threshold_node = node;
    for (CallId at = node; at != CallTree::root && block->functions.size() < analysis::TopBlock::functions_max;
         at = tree.at(at).parent)
      block->functions.push_back(tree.at(tree.at(at).function).name);
  }
  pass.summary.mmap_threshold.name_sites();
}

std::vector<PageHolder> find_holders(const PagePass& pass, const PagePass::Moment& moment, const Recording& recording) {
  const TraceFigures& trace = recording.traces().front();
  const CallTree& tree = recording.tree();
  const auto node_of = [&](KeyId key) -> CallId {
    assert(key < pass.keys.size());
    const StackId stack = pass.keys[key].stack;
    const CallId node = stack < trace.node_of_key.size() ? trace.node_of_key[stack] : CallTree::left_out;
    return node == CallTree::left_out ? node : tree.charged(node);
  };
  std::map<FunctionId, PageHolder> holders;
  std::map<std::pair<FunctionId, std::uint32_t>, std::int64_t> by_phase;
  std::map<FunctionId, std::map<CallId, std::int64_t>> by_node;
  for (const PageUses::Entry& entry : moment.uses.entries) {
    const CallId node = node_of(entry.key);
    if (node == CallTree::left_out) continue;
    const FunctionId function = tree.at(node).function;
    holders[function].use += entry.use;
    by_phase[{function, pass.keys[entry.key].phase}] += entry.use.separable_bytes;
    by_node[function][node] += entry.use.separable_bytes;
  }
  // Pages that several keys of one function share, and no other's.
  const std::vector<KeyId>& shared = moment.uses.shared_pages;
  for (std::size_t at = 0; at < shared.size(); at += shared[at] + std::size_t{1}) {
    const CallId first = node_of(shared[at + 1]);
    const bool is_one =
        first != CallTree::left_out &&
        std::all_of(shared.begin() + static_cast<std::ptrdiff_t>(at + 1),
                    shared.begin() + static_cast<std::ptrdiff_t>(at + 1 + shared[at]), [&](KeyId key) {
                      const CallId node = node_of(key);
                      return node != CallTree::left_out && tree.at(node).function == tree.at(first).function;
                    });
    if (is_one) holders[tree.at(first).function].use.sole_bytes += moment.uses.page_size;
  }
  for (const auto& [function_and_phase, separable] : by_phase) {
    PageHolder& holder = holders[function_and_phase.first];
    if (separable <= holder.separable_of_phase) continue;
    holder.separable_of_phase = separable;
    holder.phase = function_and_phase.second;
  }
  std::vector<PageHolder> sorted;
  for (auto& [function, holder] : holders) {
    holder.function = function;
    holder.separable_by_node.assign(by_node[function].begin(), by_node[function].end());
    sorted.push_back(std::move(holder));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PageHolder& a, const PageHolder& b) { return a.use.unused_bytes > b.use.unused_bytes; });
  return sorted;
}

}  // namespace cmt::report
