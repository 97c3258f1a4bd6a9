// Writes the interpreted form of heaptrack 1.x, file format 3, for heaptrack_print and heaptrack_gui. Its records are
// those that toolkit/logs/heaptrack.cpp shows. A number refers to a definition before it:
//
//     v 10400 3            versions of heaptrack and of the form
//     X ./prog --fast      the command
//     I 1000 0             page size; pages of the machine, not known here
//
//     s 4 main             string 1, its length first
//     i 7fdd01571b9f 2 1 3 1f     address 1: in module 2, function 1, file 3, line 31; inlined functions first
//
//     t 1 0                node 1 of the stacks: address 1, no caller
//     a 18 1               kind of block 0: 24 bytes, allocated by the stack of node 1
//
//     c 1f                 31 ms since the start
//     + 0                  a block of kind 0 is made
//     - 0                  and freed
//     R 3ef                resident pages
//
// The names of functions have to come before the events, but are known only after all events are read (trace2cmt
// --symbolise). So the events are kept in a temporary file until then.

#include <unistd.h>

#include <algorithm>
#include <boost/functional/hash.hpp>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libcmt/block_table.h"
#include "libcmt/text/format.h"
#include "libcmt/text/utf8.h"
#include "toolkit/files/compressed_output.h"
#include "toolkit/process/proc_file.h"
#include "trace2cmt/sinks/plain_calls.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::uint64_t usual_page_size = 4096;

void append_hex(std::string& out, std::uint64_t number) { cmt::text::append_number(out, number, 16); }

/// The stacks of blocks, as heaptrack's tree and tables. A caller has a lower number than the functions that it calls.
class HeaptrackTree {
 public:
  void use_stacks(const cmt::StackTable& stacks) { stacks_ = &stacks; }

  /// The number of a stack's node; 0 if the stack is not known.
  std::uint32_t number_of(cmt::StackId stack);

  /// Whether there are frames that --symbolise could name, and none of them has names.
  bool lacks_names() const;

  /// Writes the strings, the addresses and the nodes.
  void write(const std::function<void(std::string&)>& flush_if_full, std::string& out);

 private:
  std::uint64_t text_number(std::string_view text);
  void append_address(std::string& out, cmt::FrameId id);

  const cmt::StackTable* stacks_ = nullptr;
  std::vector<std::uint32_t> numbers_;  // by StackId; 0: none yet
  std::vector<cmt::StackId> nodes_;     // by number less 1
  std::vector<cmt::StackId> path_;
  std::unordered_map<std::string, std::uint64_t> text_numbers_;
  std::vector<const std::string*> texts_;
};

std::uint32_t HeaptrackTree::number_of(cmt::StackId stack) {
  if (stacks_ == nullptr || stack >= stacks_->node_count()) return 0;
  if (numbers_.size() < stacks_->node_count()) numbers_.resize(stacks_->node_count());
  path_.clear();
  for (cmt::StackId at = stack; at != 0 && numbers_[at] == 0; at = stacks_->node(at).parent) path_.push_back(at);
  for (auto at = path_.rbegin(); at != path_.rend(); ++at) {
    if (stacks_->node(*at).frame == 0) continue;  // the stack is cut there
    assert(numbers_[stacks_->node(*at).parent] <= nodes_.size());
    nodes_.push_back(*at);
    numbers_[*at] = static_cast<std::uint32_t>(nodes_.size());
  }
  return numbers_[stack];
}

bool HeaptrackTree::lacks_names() const {
  bool has_code = false;
  for (const cmt::StackId node : nodes_) {
    const cmt::FrameId frame = stacks_->node(node).frame;
    if (stacks_->module(stacks_->frame(frame).module).is_interpreter()) continue;
    if (!stacks_->names(frame).empty()) return false;
    has_code = true;
  }
  return has_code;
}

/// The number of a text, which is made one line; 0 for an empty text.
std::uint64_t HeaptrackTree::text_number(std::string_view text) {
  if (text.empty()) return 0;
  const auto [found, is_new] = text_numbers_.try_emplace(cmt::text::to_line(text), texts_.size() + 1);
  if (is_new) texts_.push_back(&found->first);
  return found->second;
}

void HeaptrackTree::append_address(std::string& out, cmt::FrameId id) {
  const cmt::Frame& frame = stacks_->frame(id);
  const auto append = [&](std::uint64_t number) { append_hex(out += ' ', number); };
  out += 'i';
  append(frame.address);
  append(frame.module == 0 ? 0 : text_number(stacks_->module(frame.module).path));
  for (const cmt::FrameName& name : stacks_->names(id)) {
    append(text_number(name.function));
    append(text_number(name.file));
    append(name.line);
  }
  out += '\n';
}

void HeaptrackTree::write(const std::function<void(std::string&)>& flush_if_full, std::string& out) {
  if (stacks_ == nullptr) return;
  std::vector<std::uint32_t> address_numbers(stacks_->frame_count());
  std::uint32_t addresses = 0;
  std::string address_lines;
  for (const cmt::StackId node : nodes_) {
    const cmt::FrameId frame = stacks_->node(node).frame;
    assert(frame != 0);
    if (address_numbers[frame] != 0) continue;
    address_numbers[frame] = ++addresses;
    append_address(address_lines, frame);
  }
  for (const std::string* const text : texts_) {
    append_hex(out += "s ", text->size());
    out += ' ' + *text + '\n';
    flush_if_full(out);
  }
  out += address_lines;
  for (const cmt::StackId node : nodes_) {
    assert(numbers_[stacks_->node(node).parent] < numbers_[node]);
    append_hex(out += "t ", address_numbers[stacks_->node(node).frame]);
    append_hex(out += ' ', numbers_[stacks_->node(node).parent]);
    out += '\n';
    flush_if_full(out);
  }
}

class HeaptrackSink : public LedgerSink {
 public:
  explicit HeaptrackSink(SinkSettings settings)
      : fd_(settings.fd),
        compression_(cmt::files::compression_of(settings.path)),
        path_(std::move(settings.path)),
        header_(std::move(settings.header)),
        say_(std::move(settings.say)) {
    const std::string size(header_.find("page_size").value_or(""));
    page_size_ = std::strtoull(size.c_str(), nullptr, 10);
    if (page_size_ == 0) page_size_ = usual_page_size;
  }

  void use_stacks(const cmt::StackTable& stacks) override { tree_.use_stacks(stacks); }
  void finish(const cmt::Repairs&, bool) override;

 private:
  struct NumberedBlock {
    cmt::Tag tag = 0;
    std::uint32_t kind = 0;
  };
  using SizeAndNode = std::pair<std::uint64_t, std::uint32_t>;

  void write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) override;
  void write_time(std::uint64_t time_ns);
  std::uint32_t kind_of(std::uint64_t size, std::uint32_t node);
  void put_record(char sign, std::uint64_t number);
  std::string head() const;
  void write_file();

  int fd_;
  cmt::files::Compression compression_;
  std::string path_;
  cmt::Header header_;
  Say say_;
  std::uint64_t page_size_;
  std::uint64_t last_ms_ = 0;
  HeaptrackTree tree_;
  PlainCalls calls_{{.least = 0}};
  std::unordered_map<SizeAndNode, std::uint32_t, boost::hash<SizeAndNode>> kinds_;
  cmt::BlockTable<NumberedBlock> blocks_;  // the live blocks
  cmt::process::Fd temporary_{cmt::open_temporary_file()};
  BufferedOutput events_{temporary_.get(), "writing a temporary file"};
};

void HeaptrackSink::write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  write_time(event.time_ns);
  if (event.kind == cmt::Kind::sample) return put_record('R', event.size / page_size_);
  const PlainCall call = calls_.nearest(event, old != nullptr);
  if (call.kind == PlainCall::Kind::free || call.kind == PlainCall::Kind::realloc) {
    assert(blocks_.find(call.old_tag) != nullptr);
    put_record('-', blocks_.erase(call.old_tag)->kind);
  }
  if (call.kind == PlainCall::Kind::malloc || call.kind == PlainCall::Kind::realloc) {
    const std::uint32_t kind = kind_of(call.size, tree_.number_of(event.stack));
    blocks_.insert({call.tag, kind});
    put_record('+', kind);
  }
}

void HeaptrackSink::write_time(std::uint64_t time_ns) {
  constexpr std::uint64_t ns_per_ms = 1'000'000;
  if (time_ns == cmt::unknown || time_ns / ns_per_ms <= last_ms_) return;
  last_ms_ = time_ns / ns_per_ms;
  put_record('c', last_ms_);
}

std::uint32_t HeaptrackSink::kind_of(std::uint64_t size, std::uint32_t node) {
  const auto [found, is_new] = kinds_.try_emplace(SizeAndNode{size, node}, static_cast<std::uint32_t>(kinds_.size()));
  if (is_new) {
    append_hex(events_.text() += "a ", size);
    append_hex(events_.text() += ' ', node);
    events_.text() += '\n';
  }
  return found->second;
}

void HeaptrackSink::put_record(char sign, std::uint64_t number) {
  std::string& out = events_.text();
  out += sign;
  append_hex(out += ' ', number);
  out += '\n';
  events_.flush_if_full();
}

std::string HeaptrackSink::head() const {
  const std::string_view program = header_.find("program").value_or("[unknown]");
  std::string text = "v 10400 3\nX " + cmt::text::to_line(header_.find("command").value_or(program)) + "\nI ";
  append_hex(text, page_size_);
  return text + " 0\n";
}

void HeaptrackSink::write_file() {
  constexpr std::size_t piece = std::size_t{64} * 1024;
  cmt::files::CompressedOutput output(fd_, compression_, path_);
  const auto flush_if_full = [&](std::string& text) {
    if (text.size() < piece) return;
    output.write(text);
    text.clear();
  };
  std::string text = head();
  tree_.write(flush_if_full, text);
  output.write(text);
  lseek(temporary_.get(), 0, SEEK_SET);
  for (text.resize(piece);;) {
    const ssize_t size = read(temporary_.get(), text.data(), piece);
    if (size < 0) throw std::system_error(errno, std::generic_category(), "a temporary file");
    if (size == 0) break;
    output.write({text.data(), static_cast<std::size_t>(size)});
  }
  output.finish();
}

void HeaptrackSink::finish(const cmt::Repairs&, bool) {
  events_.flush();
  write_file();
  calls_.report_losses("heaptrack", say_);
  if (tree_.lacks_names()) say_("the call stacks have no names of functions; --symbolise looks for them");
}

std::unique_ptr<Sink> make_heaptrack_sink(SinkSettings settings) {
  return std::make_unique<HeaptrackSink>(std::move(settings));
}

}  // namespace

extern const OutputForm heaptrack_form{"heaptrack", "", make_heaptrack_sink, true};

}  // namespace cmt::trace2cmt
