// Which thread may be made to call dlopen, or a function of the allocator such as malloc_trim?
//
// A thread that holds no lock which the function needs, and has enough stack. The call stack shows what a thread does:
// no zone of zones.h may be on it. Threads are stopped one at a time, for some 100 us, while all others run. A thread
// stopped inside malloc would hold an arena's lock, and the function would wait for the lock for ever.
//
// Frames that no table describes (code that was compiled at run time) hide those outside of them. The hidden part of
// the stack is searched for words that are return addresses in a zone. Old values may look like one; then the thread is
// not chosen, which does no harm.
//
// The stack has to be the thread's own: a coroutine's may be a small block of the heap, and below it is other data. The
// first thread's is called [stack]; libc puts the control block of each other thread, to which fs points, at the upper
// end of its stack.

#include "toolkit/remote_call/safe_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <list>
#include <set>
#include <system_error>

#include "toolkit/process/stat.h"
#include "toolkit/process/stopping/traceable.h"

namespace cmt::remote_call {
namespace {

constexpr std::chrono::microseconds look_at_stops_after(100);
constexpr std::chrono::milliseconds other_tracer_within(500);
constexpr std::uint64_t searched_bytes_max = 1 << 20;
/// The first thread's stack grows by itself; the frame is written before that.
constexpr std::uint64_t first_stack_bytes = 24 << 10;
constexpr std::uint64_t thread_stack_bytes_max = std::uint64_t{1} << 30;

Obstacle obstacle_of(Zone zone) {
  switch (zone) {
    case Zone::loader:
      return Obstacle::loader;
    case Zone::allocator:
      return Obstacle::allocator;
    case Zone::tracer:
      return Obstacle::tracer;
    case Zone::locked_call:
      return Obstacle::locked_call;
    default:
      return Obstacle::none;
  }
}

const char* text_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::loader:
      return "in the dynamic loader";
    case Obstacle::allocator:
      return "in malloc";
    case Obstacle::tracer:
      return "in libcmttrace";
    case Obstacle::locked_call:
      return "in fork, pthread_create, exit or the like";
    case Obstacle::signal_handler:
      return "in a signal handler";
    case Obstacle::unknown_stack:
      return "on a stack of another kind than libc's";
    case Obstacle::little_stack:
      return "without room on its stack";
    case Obstacle::sequence:
      return "in a restartable sequence";
    default:
      return "in a state that cannot be restored";
  }
}

const process::Mapping* mapping_at(const std::vector<process::Mapping>& maps, std::uint64_t address) {
  const auto found = std::find_if(maps.begin(), maps.end(),
                                  [address](const auto& m) { return m.begin <= address && address < m.end; });
  return found == maps.end() ? nullptr : &*found;
}

/// Whether an address may be one to which a call returns: the instruction before it is a call.
bool follows_call(const RemoteMemory& memory, std::uint64_t address) {
  unsigned char code[7];
  if (!memory.read_kept(address - sizeof code, code, sizeof code)) return false;
  if (code[2] == 0xe8) return true;
  for (std::size_t bytes = 2; bytes <= sizeof code; ++bytes) {
    const unsigned char* const at = code + sizeof code - bytes;
    if (at[0] == 0xff && (at[1] >> 3 & 7) == 2) return true;
  }
  return false;
}

/// Calls `see` with each word of a part of the stack that may be a return address, until it returns true. Returns true
/// also if the part is too long, or cannot be read.
template <class See>
bool search_words(const Target& target, std::uint64_t from, See see) {
  const process::Mapping* const stack = mapping_at(target.maps(), from);
  if (stack == nullptr || stack->end - from > searched_bytes_max) return true;
  assert(stack->begin <= from && from < stack->end);
  std::vector<std::uint64_t> words((stack->end - from) / sizeof(std::uint64_t));
  if (!target.memory().read(from & ~std::uint64_t{7}, words.data(), words.size() * sizeof(std::uint64_t))) return true;
  return std::any_of(words.begin(), words.end(), see);
}

Obstacle obstacle_on_stack(const Target& target, const user_regs_struct& registers) {
  const process::Mapping* const stack = mapping_at(target.maps(), registers.rsp);
  if (stack == nullptr) return Obstacle::unknown_stack;
  assert(stack->begin <= registers.rsp && registers.rsp < stack->end);
  const std::uint64_t left = registers.rsp - stack->begin;
  if (stack->name == "[stack]") return left < first_stack_bytes ? Obstacle::little_stack : Obstacle::none;
  const std::uint64_t above = registers.fs_base - registers.rsp;
  if (registers.fs_base < registers.rsp || registers.fs_base >= stack->end || above > thread_stack_bytes_max)
    return Obstacle::unknown_stack;
  return left < injection_stack_bytes ? Obstacle::little_stack : Obstacle::none;
}

Obstacle obstacle_in_frames(const Target& target, const WalkedStack& stack) {
  for (const Frame& frame : stack.frames) {
    if (frame.is_signal) return Obstacle::signal_handler;
    const Zone zone = target.zones().at(frame.pc);
    if (zone != Zone::none) return obstacle_of(zone);
  }
  if (stack.unknown_from == 0) return Obstacle::none;
  Obstacle obstacle = Obstacle::none;
  const bool is_found = search_words(target, stack.unknown_from, [&](std::uint64_t word) {
    const Zone zone = target.zones().at(word);
    if (word == target.functions().return_trampoline) obstacle = Obstacle::signal_handler;
    if (zone != Zone::none && follows_call(target.memory(), word)) obstacle = obstacle_of(zone);
    return obstacle != Obstacle::none;
  });
  return is_found && obstacle == Obstacle::none ? Obstacle::unknown_stack : obstacle;
}

}  // namespace

Obstacle find_obstacle(const Target& target, const StoppedThread& thread) {
  const user_regs_struct registers = thread.registers();
  const Obstacle on_stack = obstacle_on_stack(target, registers);
  if (on_stack != Obstacle::none) return on_stack;
  if (thread.is_in_restartable_sequence(registers.rip)) return Obstacle::sequence;
  return obstacle_in_frames(target, walk_stack(target.memory(), target.modules(), frame_registers(registers)));
}

bool is_in_tracer(const Target& target, const StoppedThread& thread) {
  const WalkedStack stack = walk_stack(target.memory(), target.modules(), frame_registers(thread.registers()));
  const auto is_inside = [&](std::uint64_t address) { return target.zones().at(address) == Zone::tracer; };
  if (std::any_of(stack.frames.begin(), stack.frames.end(), [&](const Frame& f) { return is_inside(f.pc); }))
    return true;
  return stack.unknown_from != 0 && search_words(target, stack.unknown_from, [&](std::uint64_t word) {
           return is_inside(word) && follows_call(target.memory(), word);
         });
}

/// Whether a thread is seen to be outside of libcmttrace without a stop: it waits in the kernel, and its stack has no
/// return address there. A signal frame may lead to another stack.
static bool is_seen_outside(const Target& target, int tid) {
  constexpr std::uint32_t signal_frame_mark = 0x46505853;  // FP_XSTATE_MAGIC1
  const auto switches = [&] {
    const std::string path = process::path_of(target.pid(), "task/" + std::to_string(tid) + "/status");
    return process::parse_status(process::read_file(path)).switches;
  };
  const auto leads_inside = [&](std::uint64_t word) {
    return static_cast<std::uint32_t>(word) == signal_frame_mark || word == target.functions().return_trampoline ||
           target.zones().at(word) == Zone::tracer;
  };
  try {
    const auto call = process::read_waiting_call(target.pid(), tid);
    if (!call || target.zones().at(call->instruction) == Zone::tracer) return false;
    const std::uint64_t before = switches();
    return !search_words(target, call->stack_pointer, leads_inside) &&
           process::read_waiting_call(target.pid(), tid) == call && switches() == before;
  } catch (const std::system_error&) {  // it has ended
    return false;
  }
}

std::optional<StoppedThread> SafeThreads::stop(int tid) {
  StoppedThread::release_late(target_.pid(), calls_, late_);
  if (std::find(late_.begin(), late_.end(), tid) != late_.end()) return std::nullopt;
  for (const auto deadline = Clock::now() + other_tracer_within;; usleep(1000)) {
    try {
      return StoppedThread::stop(target_.pid(), tid, calls_, late_);
    } catch (const std::system_error& error) {
      if (error.code().value() == EPERM && Clock::now() < deadline) continue;  // perhaps a pause of cmtwatch
      throw Refused("process " + target_.called() +
                    " cannot be attached to: " + process::why_not_traceable(tid, error.code().value()));
    }
  }
}

void SafeThreads::release(StoppedThread thread) { longest_stop_ = std::max(longest_stop_, thread.release()); }

/// Whether the kernel saves how long a call still waits when a stop interrupts it.
static bool has_saved_time(const process::WaitingCall& call) {
  constexpr std::uint64_t for_ever = 0xffffffff;  // poll's timeout of -1
  switch (call.number) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall:
      return true;
    case SYS_poll:
      return (call.arguments[2] & for_ever) != for_ever;
    case SYS_futex:
      return call.arguments[3] != 0;
    default:
      return false;
  }
}

/// Returns the threads in the order in which to try them: threads that wait in the kernel and threads that run by
/// turns. The former stop at once, but may all wait for malloc's locks. In each group the idlest are first, because the
/// program misses them least. The last are threads whose system call a stop may disturb. A thread that cannot be
/// interrupted is left out.
std::vector<int> SafeThreads::threads_by_state(bool is_long) const {
  std::vector<std::pair<std::uint64_t, int>> waiting, others, disturbed;  // processor time, thread
  for (const int tid : process::read_threads(target_.pid())) {
    try {
      const std::string path = process::path_of(target_.pid(), "task/" + std::to_string(tid) + "/stat");
      const process::Stat stat = process::parse_stat(process::read_file(path));
      if (stat.state != 'S' && stat.state != 'R') continue;
      const auto call = stat.state == 'S' ? process::read_waiting_call(target_.pid(), tid) : std::nullopt;
      const bool is_disturbed = call && (process::may_be_disturbed(*call) || (is_long && has_saved_time(*call)));
      (is_disturbed        ? disturbed
       : stat.state == 'S' ? waiting
                           : others)
          .emplace_back(stat.user_ticks + stat.system_ticks, tid);
    } catch (const std::exception&) {  // it has ended
    }
  }
  std::sort(waiting.begin(), waiting.end());
  std::sort(others.begin(), others.end());
  std::vector<int> all;
  for (std::size_t i = 0; i < std::max(waiting.size(), others.size()); ++i) {
    if (i < waiting.size()) all.push_back(waiting[i].second);
    if (i < others.size()) all.push_back(others[i].second);
  }
  std::sort(disturbed.begin(), disturbed.end());
  for (const auto& [time, tid] : disturbed) all.push_back(tid);
  return all;
}

StoppedThread SafeThreads::choose(Clock::time_point deadline, const std::set<int>& avoided, bool is_long) {
  do {
    if (target_.has_ended()) throw ThreadGone("process " + target_.called() + " has ended");
    std::map<Obstacle, unsigned> met;
    target_.read_maps_again();
    for (const int tid : threads_by_state(is_long)) {
      auto thread = avoided.contains(tid) ? std::nullopt : stop(tid);
      if (!thread) continue;
      try {
        Obstacle obstacle = find_obstacle(target_, *thread);
        if (obstacle == Obstacle::none &&
            !Injector(target_.memory(), *thread, target_.functions().return_trampoline).is_possible())
          obstacle = Obstacle::state;
        if (obstacle == Obstacle::none) return std::move(*thread);
        ++met[obstacle];
        release(std::move(*thread));
      } catch (const ThreadGone&) {
      }
      if (Clock::now() > deadline && !met_.empty()) break;  // else a first look at all
    }
    if (Clock::now() < deadline || met_.empty()) met_ = std::move(met);
    usleep(500);
  } while (Clock::now() < deadline);
  refuse();
}

void SafeThreads::refuse() const {
  std::string text;
  for (const auto& [obstacle, count] : met_)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + text_of(obstacle);
  throw Refused("process " + target_.called() + ": no thread can be made to call a function now" +
                (text.empty() ? "" : ": " + text) + "; try again");
}

bool SafeThreads::is_in_call(int tid, std::uint64_t frame) {
  if (!process::has_thread(target_.pid(), tid)) return false;
  auto thread = stop(tid);
  if (!thread) return true;
  const WalkedStack stack = walk_stack(target_.memory(), target_.modules(), frame_registers(thread->registers()));
  const bool is_inside = remote_call::is_in_call(stack, frame, target_.functions().return_trampoline);
  release(std::move(*thread));
  return is_inside;
}

/// Most threads wait, and are seen to be outside. Each other stops when it has a processor, and goes on as soon as its
/// stack has been seen. The request to a thread that does not stop remains until the tracer ends.
void SafeThreads::drop_outside(std::vector<int>& threads, Clock::time_point deadline) {
  StoppedThread::release_late(target_.pid(), calls_, late_);
  std::set<int> inside;
  std::list<StoppedThread> asked;
  for (const int tid : threads) {
    if (std::find(late_.begin(), late_.end(), tid) != late_.end()) {
      inside.insert(tid);
    } else if (!is_seen_outside(target_, tid)) {
      try {
        if (auto thread = StoppedThread::begin_stop(target_.pid(), tid, calls_)) asked.push_back(std::move(*thread));
      } catch (const std::system_error&) {  // another process traces it
        inside.insert(tid);
      }
    }
  }
  while (!asked.empty() && Clock::now() < deadline) {
    std::erase_if(asked, [&](StoppedThread& thread) {
      try {
        if (!thread.has_stopped()) return false;
        if (is_in_tracer(target_, thread)) inside.insert(thread.tid());
        longest_stop_ = std::max(longest_stop_, thread.release());
      } catch (const ThreadGone&) {
      }
      return true;
    });
    if (!asked.empty()) await_notice(look_at_stops_after);
  }
  for (const StoppedThread& thread : asked) {
    late_.push_back(thread.tid());
    inside.insert(thread.tid());
  }
  threads.assign(inside.begin(), inside.end());
}

std::optional<std::vector<int>> SafeThreads::list_all(Clock::time_point deadline) const {
  do {
    std::vector<int> threads = process::read_threads(target_.pid());
    if (process::are_all_threads(target_.pid(), threads)) return threads;
  } while (Clock::now() < deadline);
  return std::nullopt;
}

bool SafeThreads::await_none_in_tracer(Clock::time_point deadline) {
  auto all = list_all(deadline);
  if (!all) return false;
  for (std::vector<int> threads = std::move(*all); !threads.empty(); usleep(500)) {
    if (Clock::now() > deadline) return false;
    target_.read_maps_again();
    drop_outside(threads, deadline);
  }
  return true;
}

}  // namespace cmt::remote_call
