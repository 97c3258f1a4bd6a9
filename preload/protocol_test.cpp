#include "preload/protocol.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcmt/trace/files.h"
#include "preload/program/collector_start.h"
#include "preload/text.h"
#include "toolkit/command/command_line.h"

namespace {

constexpr std::uint32_t index_max = (1u << stack_index_bits) - 1;

std::vector<std::uint32_t> numbered_frames(std::uint32_t count) {
  std::vector<std::uint32_t> frames(count);
  for (std::uint32_t i = 0; i < count; ++i) frames[i] = i % 2 == 0 ? index_max - i : i;
  return frames;
}

std::vector<Slot> encode(const StackRecord& stack, const std::vector<std::uint32_t>& frames) {
  std::array<std::uint32_t, stack_frames_first> first{};
  std::copy_n(frames.begin(), std::min(frames.size(), first.size()), first.begin());
  std::vector<Slot> slots{slot_of_stack(&stack, first.data())};
  for (std::size_t at = stack_frames_first; at < frames.size(); at += stack_frames_more) {
    std::array<std::uint32_t, stack_frames_more> more{};
    std::copy_n(frames.begin() + static_cast<long>(at), std::min(frames.size() - at, more.size()), more.begin());
    slots.push_back(slot_of_frames(more.data()));
  }
  return slots;
}

std::vector<std::uint32_t> decode(const std::vector<Slot>& slots, std::uint32_t added) {
  std::array<std::uint32_t, stack_frames_first> first{};
  std::array<std::uint32_t, stack_frames_more> more{};
  stack_of_slot(slots.data(), first.data());
  std::vector<std::uint32_t> frames(first.begin(), first.end());
  for (std::size_t i = 1; i < slots.size(); ++i) {
    frames_of_slot(&slots[i], more.data());
    frames.insert(frames.end(), more.begin(), more.end());
  }
  frames.resize(added);
  return frames;
}

}  // namespace

TEST_CASE("a stack's records give back what was put into them") {
  for (const std::uint32_t added : {0u, 1u, 4u, 5u, 6u, 11u, 12u, 100u, 4096u}) {
    const StackRecord stack{4096 - added, added, added % stack_numbers, added % 2 == 0, added % 4 < 2};
    const auto frames = numbered_frames(added);
    const auto slots = encode(stack, frames);
    CHECK(slots.size() == stack_slots(added));
    std::array<std::uint32_t, stack_frames_first> first{};
    const StackRecord read = stack_of_slot(slots.data(), first.data());
    CHECK(read.kept == stack.kept);
    CHECK(read.added == stack.added);
    CHECK(read.number == stack.number);
    CHECK(read.is_cut == stack.is_cut);
    CHECK(read.is_apart == stack.is_apart);
    CHECK(decode(slots, added) == frames);
  }
}

TEST_CASE("a stack's records leave the bits of publication alone") {
  const StackRecord stack{8191, 8191, 15, true, true};
  const std::vector<std::uint32_t> frames(stack_frames_more, index_max);
  const Slot first = slot_of_stack(&stack, frames.data()), more = slot_of_frames(frames.data());
  CHECK(slot_kind(first.head) == record_stack);
  CHECK(slot_kind(more.head) == record_frames);
  for (const Slot& slot : {first, more}) CHECK((slot.head & (slot_valid | slot_parity | slot_has_old_block)) == 0);
}

std::string command_of(std::string_view words, bool has_title = false, std::size_t room = 64) {
  std::string text(room, 'x');
  put_command(text.data(), text.size(), words.data(), std::min(words.size(), room), has_title);
  return text.c_str();
}

TEST_CASE("recorder and tools have the same names of processes") {
  CHECK(cmt::supervisor_name == SUPERVISOR_NAME);
  CHECK(cmt::collector_name == COLLECTOR_NAME);
  CHECK(std::string_view("cmttrace-collector").substr(0, 15) == COLLECTOR_NAME);
}

TEST_CASE("recorder and tools write a word alike for a shell") {
  const std::pair<std::string, std::string> words[] = {{"print-1", "print-1"},
                                                       {"a=b", "a=b"},
                                                       {"", "''"},
                                                       {"a  b", "'a  b'"},
                                                       {"it's", R"('it'\''s')"},
                                                       {"\"$HOME\" `*`", R"('"$HOME" `*`')"},
                                                       {"#", "'#'"},
                                                       {"back\\slash", R"('back\slash')"},
                                                       {"caf\u00e9", "'caf\u00e9'"},
                                                       {"\U0001f600", "'\U0001f600'"},
                                                       {"a\nb\t'\\", R"($'a\nb\t\'\\')"},
                                                       {"\x1b[1m\x7f", R"($'\033[1m\177')"},
                                                       {"\xc2\x9b", R"($'\302\233')"},
                                                       {"\xc2\xa0", "'\xc2\xa0'"},
                                                       {"\u061c", R"($'\330\234')"},
                                                       {"a\u200f", R"($'a\342\200\217')"},
                                                       {"\u202a", R"($'\342\200\252')"},
                                                       {"x\u202ey", R"($'x\342\200\256y')"},
                                                       {"\u202f", "'\u202f'"},
                                                       {"\u2065", "'\u2065'"},
                                                       {"\u2066", R"($'\342\201\246')"},
                                                       {"\u2069", R"($'\342\201\251')"},
                                                       {"\u206a", "'\u206a'"},
                                                       {"\xff", R"($'\377')"},
                                                       {"\xc3", R"($'\303')"},
                                                       {"\xed\xa0\x80", R"($'\355\240\200')"},
                                                       {"\xe0\x80\x80", R"($'\340\200\200')"},
                                                       {"\xf0\x80\x80\x80", R"($'\360\200\200\200')"},
                                                       {"\xf4\x90\x80\x80", R"($'\364\220\200\200')"}};
  for (const auto& [word, expected] : words) {
    CHECK(cmt::command::shell_word(word) == expected);
    CHECK(command_of("app" + std::string(1, '\0') + word + std::string(1, '\0')) == "app " + expected);
  }
}

TEST_CASE("a command line is written as a shell reads it, but a title as it is") {
  using namespace std::string_view_literals;
  CHECK(command_of("perl\0-e\0print 1\0it's\0\0a=b\0"sv) == R"(perl -e 'print 1' 'it'\''s' '' a=b)");
  CHECK(command_of("perl\0\0-w\0\0"sv) == "perl '' -w ''");
  CHECK(command_of("app\0\0"sv) == "app ''");
  CHECK(command_of("my app\0"sv) == "'my app'");
  CHECK(command_of("a=b\0a=b\0"sv) == "'a=b' a=b");  // a shell would set a variable
  CHECK(command_of(""sv) == "");
  CHECK(command_of("nginx: worker process\0\0\0"sv, true) == "nginx: worker process");
  CHECK(command_of("title \xff\0"sv, true) == "title ?");
  CHECK(command_of("app\0-w\0\0"sv, true) == "app -w ''");
  CHECK(command_of("\0\0"sv, true) == "");
}

TEST_CASE("a command line that is cut says so") {
  using namespace std::string_view_literals;
  CHECK(command_of("app\0b c\0"sv, false, 16) == "app 'b c'");
  CHECK(command_of("app\0b cd\0"sv, false, 16) == "app 'b cd [cut]");
  CHECK(command_of("app\0abcdefgh\0"sv, false, 16) == "app abcde [cut]");
  CHECK(command_of("app\0bc\0\0\0\0\0\0\0\0\0"sv, false, 16) == "app bc '' [cut]");
  CHECK(command_of("app\0ab\u00e9\u00e9\0"sv, false, 13) == "app 'a [cut]");
  CHECK(command_of("a longer title\0"sv, true, 16) == "a longer  [cut]");
}
