// Checks call stacks of rings against full stacks, for random changes, lost records, full tables and recoveries.

#include "preload/collector/ring_stacks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "preload/collector/drain/ring_events.h"

using namespace cmt::collector;
using cmt::StackId;

namespace {

constexpr std::uint32_t stack_malloc = 0, stack_free = 1;
using Frames = std::vector<std::uint32_t>;  // indexes of rules, outermost first

/// A share in which each index has an address of its own.
std::unique_ptr<StackShare> share_of(std::uint32_t rules) {
  auto share = std::make_unique<StackShare>();
  for (std::uint32_t i = 0; i < rules; ++i) share->table.rule[i].key = 0x1000 + i;
  return share;
}

std::uint64_t same_time(std::uint64_t stamp) { return stamp; }

/// The stack of a node, as it was recorded. Its first frame is `cut` if it is cut.
constexpr std::uint32_t cut = 1u << 30;
Frames recorded_frames(const cmt::StackTable& table, StackId stack) {
  Frames frames;
  for (; stack != 0; stack = table.node(stack).parent) {
    const cmt::FrameId frame = table.node(stack).frame;
    frames.insert(frames.begin(), frame == 0 ? cut : static_cast<std::uint32_t>(table.frame(frame).address - 0x1000));
  }
  return frames;
}

void append_stack(std::vector<Slot>& records, StackRecord stack, const Frames& added) {
  stack.added = static_cast<std::uint32_t>(added.size());
  std::uint32_t first[stack_frames_first] = {};
  std::copy_n(added.begin(), std::min<std::size_t>(added.size(), stack_frames_first), first);
  records.push_back(slot_of_stack(&stack, first));
  for (std::size_t at = stack_frames_first; at < added.size(); at += stack_frames_more) {
    std::uint32_t more[stack_frames_more] = {};
    std::copy_n(added.data() + at, std::min<std::size_t>(added.size() - at, stack_frames_more), more);
    records.push_back(slot_of_frames(more));
  }
}

Slot event_of(std::uint32_t kind) { return {std::uint64_t{0x10} << slot_address_shift | kind, 0}; }

/// A thread that records stacks, as the tracer does.
class Recorder {
 public:
  explicit Recorder(std::uint32_t seed) : random_(seed) {}

  /// Makes the next random step: changes the stack, and records an event, or a record that interrupts a stack.
  void step() {
    const auto what = random_() % 100;
    if (what < 4) return record_free();
    if (what < 8) return record_apart();
    if (what < 10) return lose_record();
    if (what < 12) return append_void();
    if (what < 13) return change_owner();
    if (what < 15) return fail_to_capture();
    walk(what < 17 ? 60 : 4);
    record_malloc();
  }

  std::vector<Slot> records;
  std::vector<Frames> wanted;  ///< the stack of each event; of one that is not known, empty

 private:
  void walk(std::uint32_t most) {
    stack_.resize(stack_.size() - std::min<std::size_t>(stack_.size(), random_() % most));
    for (auto i = 1 + random_() % most; i != 0; --i) stack_.push_back(static_cast<std::uint32_t>(random_() % 50));
    if (random_() % 20 == 0) stack_.clear(), stack_.push_back(7);
  }

  StackRecord next_record(std::size_t kept) {
    number_ = (number_ + 1) % stack_numbers;
    if (kept == 0) is_cut_ = random_() % 2 == 0;
    return {
        .kept = static_cast<std::uint32_t>(kept), .added = 0, .number = number_, .is_cut = is_cut_, .is_apart = false};
  }

  void send_stack() {
    std::size_t kept = 0;
    while (kept < std::min(sent_.size(), stack_.size()) && sent_[kept] == stack_[kept]) ++kept;
    if (kept == stack_.size() && kept == sent_.size()) return;
    if (kept == 0) is_known_ = true;
    for (const std::size_t piece = 20; stack_.size() - kept > piece; kept += piece)
      append_stack(records, next_record(kept), {stack_.begin() + kept, stack_.begin() + kept + piece});
    append_stack(records, next_record(kept), {stack_.begin() + kept, stack_.end()});
    sent_ = stack_;
  }

  void record_malloc() {
    send_stack();
    if (random_() % 8 == 0) records.push_back({record_count, 3});
    records.push_back(event_of(stack_malloc));
    wanted.push_back(is_known_ ? sent_ : Frames{});
    if (is_known_ && is_cut_ && !sent_.empty()) wanted.back().insert(wanted.back().begin(), cut);
  }

  void record_free() {
    records.push_back(event_of(stack_free));
    wanted.emplace_back();
  }

  void record_apart() {
    const Frames frames{1, 2, static_cast<std::uint32_t>(random_() % 9)};
    append_stack(records, {.kept = 0, .added = 0, .number = 0, .is_cut = false, .is_apart = true}, frames);
    records.push_back(event_of(stack_malloc));
    wanted.push_back(frames);
  }

  /// A record that a thread reserved and never published, and a later one by a signal handler.
  void lose_record() {
    const auto before = records.size();
    walk(5);
    send_stack();
    for (auto i = before; i < records.size(); ++i) records[i] = {record_void, 0};
    if (records.size() != before) is_known_ = false;
    stack_.push_back(99);  // the handler
    record_malloc();
    sent_.clear();
  }

  void append_void() {
    records.push_back({record_void, 0});
    sent_.clear();
  }

  void change_owner() {
    records.push_back(event_of(record_owner));
    wanted.emplace_back();
    sent_.clear();
  }

  void fail_to_capture() {
    append_stack(
        records,
        {.kept = 0, .added = 0, .number = number_ = (number_ + 1) % stack_numbers, .is_cut = true, .is_apart = false},
        {});
    records.push_back(event_of(stack_malloc));
    wanted.emplace_back();
    sent_.clear();
  }

  std::mt19937 random_;
  Frames stack_, sent_;
  std::uint32_t number_ = 0;
  bool is_cut_ = false, is_known_ = false;
};

Packed packed_part(const std::vector<Slot>& records, std::size_t from, std::size_t count) {
  Packer packer;
  for (std::size_t i = from; i < from + count; ++i) packer.append(records[i].head, records[i].body);
  return packer.finish();
}

struct RingOfStacks {
  explicit RingOfStacks(const StackShare* share, std::uint32_t limit = RingStacks::nodes_max)
      : all(share, false, same_time, limit), ring(&all) {}

  std::vector<Frames> read(const std::vector<Slot>& records) {
    ring.append(packed_part(records, 0, records.size()));
    std::vector<Frames> stacks;
    for (; ring.has_front(); ring.pop()) stacks.push_back(recorded_frames(all.table(), ring.front().stack));
    return stacks;
  }

  RingStacks all;
  RingEvents ring;
};

const Slot malloc_event = event_of(stack_malloc);

StackRecord kept_frames(std::uint32_t kept, std::uint32_t number) {
  return {.kept = kept, .added = 0, .number = number, .is_cut = false, .is_apart = false};
}

/// Enters a line of Python, whose texts end with a zero, as the program does.
void add_line(InterpreterFrames& all, const std::string& function, const std::string& file, std::uint32_t line) {
  const auto add_text = [&](const std::string& text) {
    const std::uint32_t at = all.text_used;
    std::copy_n(text.c_str(), text.size() + 1, all.text + at);
    all.text_used += static_cast<std::uint32_t>(text.size()) + 1;
    return at;
  };
  if (all.used == 0) all.used = all.text_used = 1;
  const std::uint32_t function_at = add_text(function);
  all.frame[all.used++] = {.function_at = function_at, .file_at = add_text(file), .line = line};
}
constexpr std::uint32_t line_index(std::uint32_t number) { return interpreter_frames_first + number; }

/// "f a.py 3; ", for each line of a table.
std::string lines_text(const cmt::StackTable& table) {
  std::string text;
  for (cmt::FrameId id = 1; id < table.frame_count(); ++id) {
    for (const cmt::FrameName& name : table.names(id))
      text += std::string(name.function) + " " + std::string(name.file) + " " + std::to_string(name.line) + "; ";
  }
  return text;
}

constexpr StackRecord apart_stack{.kept = 0, .added = 0, .number = 0, .is_cut = false, .is_apart = true};

std::vector<Slot> stack_and_malloc(StackRecord stack, const Frames& added) {
  std::vector<Slot> records;
  append_stack(records, stack, added);
  records.push_back(malloc_event);
  return records;
}

}  // namespace

TEST_CASE("ring stacks: each event has the stack that its thread had, whatever is lost, and wherever chunks end") {
  const auto share = share_of(100);
  for (std::uint32_t round = 0; round < 40; ++round) {
    Recorder recorder(round);
    while (recorder.wanted.size() < 2000) recorder.step();
    const std::vector<Slot>& records = recorder.records;
    RingOfStacks ring(share.get());
    std::mt19937 random(round);
    std::size_t at = 0, from = 0, unknowns = 0, differences = 0;
    const auto check = [&](StackId stack) {
      differences += recorded_frames(ring.all.table(), stack) != recorder.wanted[at] ? 1 : 0;
      ++at;
    };
    while (from < records.size()) {
      const std::size_t count = std::min<std::size_t>(1 + random() % (1u << round % 12), records.size() - from);
      ring.ring.append(packed_part(records, from, count));
      from += count;
      while (ring.ring.has_front()) {
        ring.ring.pop_while(~std::uint64_t{0}, [&](auto read, const StackId* stacks, std::uint64_t, std::uint64_t&) {
          const std::size_t most = std::min<std::size_t>(read.size(), random() % 20);
          std::size_t taken = 0;
          for (; taken < most && slot_kind(read[taken].head) < record_stamp_high; ++taken) check(stacks[taken]);
          return taken;
        });
        if (!ring.ring.has_front()) break;
        check(ring.ring.stack());
        ring.ring.pop();
      }
      CHECK(ring.ring.resume_point().saved.position <= from);
    }
    for (std::size_t i = 0, event = 0; i < records.size(); ++i) {
      if (slot_kind(records[i].head) >= record_stamp_high) continue;
      unknowns += slot_kind(records[i].head) == stack_malloc && recorder.wanted[event].empty() ? 1 : 0;
      ++event;
    }
    CHECK(differences == 0);
    CHECK(at == recorder.wanted.size());
    CHECK(ring.all.unknown_events() == unknowns);
    CHECK(ring.all.cut_events() == 0);
  }
}

TEST_CASE("ring stacks: a ring that is read again from a saved position goes on with its last stack") {
  const auto share = share_of(100);
  Recorder recorder(7);
  while (recorder.wanted.size() < 3000) recorder.step();
  RingOfStacks all(share.get());
  all.ring.append(packed_part(recorder.records, 0, recorder.records.size()));
  std::mt19937 random(1);
  std::size_t restarts = 0;
  for (std::size_t event = 0; all.ring.has_front(); ++event, all.ring.pop()) {
    if (random() % 60 != 0) continue;
    const ResumePoint point = all.ring.resume_point();
    const std::size_t from = point.saved.position;
    RingOfStacks rest(share.get());
    rest.all.restore(all.all.table());
    rest.ring.resume({point.saved, rest.all.restored(point.stack)});
    const auto read = rest.read({recorder.records.begin() + static_cast<std::ptrdiff_t>(from), recorder.records.end()});
    REQUIRE(read ==
            std::vector<Frames>(recorder.wanted.begin() + static_cast<std::ptrdiff_t>(event), recorder.wanted.end()));
    ++restarts;
  }
  CHECK(restarts > 30);
}

TEST_CASE("ring stacks: where the table is full, new stacks are cut to what it has") {
  const auto share = share_of(100);
  RingOfStacks ring(share.get(), 5);  // room for four nodes, and what a stack without frames needs
  CHECK(ring.read(stack_and_malloc(kept_frames(0, 0), {1, 2, 3})) == std::vector<Frames>{{1, 2, 3}});
  CHECK(ring.read(stack_and_malloc(kept_frames(1, 1), {4, 5, 3})) == std::vector<Frames>{{1, 4}});
  CHECK(ring.read(stack_and_malloc(kept_frames(3, 2), {6})) == std::vector<Frames>{{1, 4}});
  CHECK(ring.all.cut_events() == 2);
  CHECK(ring.read(stack_and_malloc(kept_frames(1, 3), {2, 3})) == std::vector<Frames>{{1, 2, 3}});
  CHECK(ring.all.cut_events() == 2);
  CHECK(ring.read(stack_and_malloc(kept_frames(0, 4), {9, 9})) == std::vector<Frames>{{cut}});
  CHECK(ring.read(stack_and_malloc(apart_stack, {1, 8})) == std::vector<Frames>{{1}});
  CHECK(ring.all.cut_events() == 4);
  CHECK(ring.all.unknown_events() == 0);
}

TEST_CASE("ring stacks: modules have their files and times") {
  const auto share = share_of(3);
  StackModule& module = share->module[1];
  module.begin = 0x1000, module.end = 0x2000, module.bias = 0x800, module.loaded = 50;
  module.path_at = 1;
  std::copy_n("/lib/a.so", 10, share->text + 1);
  module.build_id_bytes = 2;
  module.build_id[0] = 0xab;
  share->module_of_rule[1] = 2;
  share->table.rule[2].key |= UNWIND_EXACT;
  RingOfStacks ring(share.get());
  ring.read(stack_and_malloc(kept_frames(0, 0), {1, 2}));
  const cmt::StackTable& table = ring.all.table();
  REQUIRE(table.module_count() == 2);
  CHECK(table.module(1).path == "/lib/a.so");
  CHECK(table.module(1).build_id == std::string("\xab\0", 2));
  CHECK(table.module(1).bias == 0x800);
  CHECK(table.module(1).loaded_ns == 50);
  CHECK(table.module(1).unloaded_ns == cmt::unknown);
  CHECK(table.frame(1) == cmt::Frame{.module = 1, .address = 0x1001});
  CHECK(table.frame(2) == cmt::Frame{.address = 0x1002, .is_exact = true});
  module.unloaded = 70;
  ring.all.note_unloaded();
  CHECK(table.module(1).unloaded_ns == 70);
  module.unloaded = 0;
  ring.all.note_unloaded();
  CHECK(table.module(1).unloaded_ns == cmt::unknown);
  // A recovery finds it again, though its time differs.
  RingOfStacks recovered(share.get());
  recovered.all.restore(table);
  module.loaded = 51;
  recovered.read(stack_and_malloc(kept_frames(0, 0), {1}));
  CHECK(recovered.all.table().module_count() == 2);
  CHECK(recovered.all.table().node_count() == table.node_count());
}

TEST_CASE("ring stacks: a damaged share or ring gives no stacks, and nothing worse") {
  const auto share = share_of(100);
  share->module_of_rule[3] = 0xffff;
  share->module_of_rule[4] = stack_modules_max;
  StackModule& module = share->module[stack_modules_max - 1];
  module.path_at = stack_text_bytes - 1;
  module.build_id_bytes = ~0u;
  share->text[stack_text_bytes - 1] = 'a';
  std::mt19937 random(5);
  RingOfStacks ring(share.get()), without(nullptr);
  for (int i = 0; i < 2000; ++i) {
    std::vector<Slot> records;
    for (int j = 0; j < 50; ++j) {
      const std::uint64_t high = random(), low = random(),
                          kept = random() % 2 == 0 ? ~std::uint64_t{slot_kind_mask} : 0x3f80;
      const std::uint32_t kinds[] = {record_stack, record_frames, record_void, record_owner, stack_malloc};
      const std::uint32_t kind = kinds[random() % 5];
      records.push_back({((high << 32 | low) & kept) | kind, low << 32 | high});
    }
    ring.read(records);
    without.read(records);
  }
  CHECK(ring.all.unknown_events() != 0);
  CHECK(without.all.table().frame_count() == 1);
  CHECK(ring.read(stack_and_malloc(kept_frames(0, 0), {3, 4})) == std::vector<Frames>{{3, 4}});
}

TEST_CASE("ring stacks: lines of Python are frames of one module, with names, also in a recovery") {
  const auto share = share_of(3);
  add_line(share->interpreter, "App.run", "/app/a.py", 12);
  add_line(share->interpreter, "caf\xc3\xa9\x1b[m\xff", "", 0);
  RingOfStacks ring(share.get());
  ring.read(stack_and_malloc(kept_frames(0, 0), {1, line_index(1), line_index(2), 2, line_index(0)}));
  const cmt::StackTable& table = ring.all.table();
  CHECK(ring.all.unknown_events() == 0);
  REQUIRE(table.frame_count() == 6);
  REQUIRE(table.module_count() == 2);
  CHECK(table.module(1).is_interpreter());
  CHECK(table.module(1) == cmt::Module{.path = "[python]"});
  CHECK(table.frame(2) == cmt::Frame{.module = 1, .address = 2, .is_exact = true});
  CHECK(table.frame(5) == cmt::Frame{.module = 1, .address = 1, .is_exact = true});
  const std::string lines = "App.run /app/a.py 12; caf\xc3\xa9 [m\xef\xbf\xbd  0; [python]  0; ";
  CHECK(lines_text(table) == lines);
  for (const bool is_share_missing : {false, true}) {
    RingOfStacks recovered(is_share_missing ? nullptr : share.get());
    recovered.all.restore(table);
    CHECK(lines_text(recovered.all.table()) == lines);
    if (is_share_missing) continue;
    recovered.read(stack_and_malloc(kept_frames(0, 0), {1, line_index(1), line_index(2)}));
    CHECK(recovered.all.table().frame_count() == 6);
    CHECK(recovered.all.table().node_count() == table.node_count());
  }
}

TEST_CASE("ring stacks: a line that the program has not entered is no frame, and damaged names are short") {
  const auto share = share_of(2);
  InterpreterFrames& all = share->interpreter;
  add_line(all, "f", "a.py", 1);
  add_line(all, "g", "a.py", 2);
  std::fill_n(all.text, interpreter_text_bytes, 'x');
  all.frame[1].function_at = interpreter_text_bytes - 5;
  all.frame[2] = {.function_at = ~0u, .file_at = 1, .line = 7};
  RingOfStacks ring(share.get());
  ring.read(stack_and_malloc(kept_frames(0, 0), {line_index(1), line_index(2)}));
  CHECK(ring.all.unknown_events() == 0);
  const auto names = [&](cmt::FrameId id) { return ring.all.table().names(id)[0]; };
  CHECK(names(1).function == "xxxxx");
  CHECK(names(2).function == "[python]");
  CHECK(names(2).file == std::string(RingStacks::name_bytes_max, 'x'));
  for (const std::uint32_t number : {3u, interpreter_frames_max - 1u}) {
    ring.read(stack_and_malloc(kept_frames(0, 0), {line_index(number)}));
    CHECK(ring.all.table().frame_count() == 3);
  }
  CHECK(ring.all.unknown_events() == 2);
  all.used = ~0u;
  ring.read(stack_and_malloc(kept_frames(0, 0), {line_index(interpreter_frames_max - 1)}));
  all.used = 0;
  ring.read(stack_and_malloc(kept_frames(0, 0), {line_index(0)}));
  CHECK(ring.all.unknown_events() == 2);
}
