// Makes the calls by toolkit/remote_call, which finds a safe thread and restores it afterwards.
//
// The allocator's questions need memory in the process for names and answers. It is on the stack of the thread that
// makes the call, below what the thread uses: nothing is allocated. An answer that is not known here leaves that memory
// as it is. So it is filled with a number that no figure can have.

#include "cmtwatch/explain/calls/remote_calls.h"

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>

#include "toolkit/process/proc_file.h"
#include "toolkit/process/smaps.h"
#include "toolkit/remote_call/remote_caller.h"

namespace cmt::watch::explain {
namespace {

namespace rc = remote_call;

constexpr std::uint64_t no_answer = ~std::uint64_t{0};

/// Throws rc::ThreadGone if the process has ended, or has unmapped all of its memory.
process::Mapping read_sums(const rc::Target& target) {
  const std::string text = process::read_file(process::path_of(target.pid(), "smaps_rollup"));
  const auto mappings = process::parse_smaps(text, "smaps_rollup");
  if (mappings.empty()) throw rc::ThreadGone("process " + target.called() + " has ended, or has no memory");
  return mappings[0];
}

/// Throws rc::Refused if no function of the process can be called.
void check_reachable(const rc::Target& target) {
  const std::string who = "process " + target.called();
  if (target.pid() == getpid()) throw rc::Refused(who + " is this cmtwatch, which cannot call functions in itself");
  check_callable(target);
  switch (target.c_library()) {
    case rc::CLibrary::musl:
      throw rc::Refused(who + " uses musl: functions are called only in programs with glibc");
    case rc::CLibrary::linked_statically:
      throw rc::Refused(who + " is linked statically: it exports no function of its malloc that could be called");
    case rc::CLibrary::unknown:
      throw rc::Refused(who + " has not loaded a libc.so of glibc");
    case rc::CLibrary::glibc:
      break;
  }
  if (target.functions().return_trampoline == 0) throw rc::Refused(who + " has a libc.so that is not known here");
}

/// Runs `work` with a caller for the process, and returns for how long a thread made its calls. `function` names the
/// function that is called.
template <class Work>
std::chrono::nanoseconds with_caller(rc::Target& target, const std::string& function, Work work) {
  std::chrono::nanoseconds kept{};
  rc::as_tracer([&] {
    const rc::TargetLock lock(target);
    check_reachable(target);
    rc::RemoteCaller caller(target, {.uses = {rc::CallUse::allocator}});
    try {
      work(caller);
    } catch (const rc::CallStuck&) {
      throw rc::CallStuck("process " + target.called() + ": " + function +
                          " has not returned within 10 s; the thread finishes the call by itself and goes on");
    }
    kept = caller.pauses().kept;
  });
  return kept;
}

/// A question for an allocator, and the meaning of its answer.
struct Question {
  const char* name;
  const char* meaning;
  bool is_in_pages = false;
};

constexpr const char* page_bytes_question = "arenas.page";
constexpr const char* dirty_pages_question = "stats.arenas.4096.pdirty";  // 4096: of all arenas
constexpr const char* free_pages_question = "tcmalloc.pageheap_free_bytes";

constexpr Question jemalloc_questions[] = {
    {"stats.allocated", "in blocks of the program"},
    {"stats.active", "in pages that hold blocks: the part beyond allocated is free"},
    {"stats.metadata", "of jemalloc itself"},
    {"stats.resident", "active, metadata and unused dirty pages: an upper bound of what is resident"},
    {"stats.mapped", "in mappings of active and unused pages"},
    {"stats.retained", "address space that is kept for reuse, and not resident"},
    {dirty_pages_question, "unused pages, resident until they decay", true},
    {"stats.arenas.4096.pmuzzy", "unused pages that the kernel may take at any time (MADV_FREE)", true},
    {"stats.arenas.4096.tcache_bytes", "free, in threads' caches"},
};

constexpr Question tcmalloc_questions[] = {
    {"generic.current_allocated_bytes", "in blocks of the program"},
    {"generic.heap_size", "address space of the heap without what was given back"},
    {free_pages_question, "whole free pages, resident"},
    {"tcmalloc.pageheap_unmapped_bytes", "whole free pages that were given back"},
    {"tcmalloc.central_cache_free_bytes", "free, in the central caches"},
    {"tcmalloc.transfer_cache_free_bytes", "free, on the way between caches"},
    {"tcmalloc.thread_cache_free_bytes", "free, in threads' caches"},
};

/// The bytes of a call: a name, and words after it.
class CallBytes {
 public:
  static constexpr std::uint64_t name_at = 0;

  CallBytes(std::string_view name, std::initializer_list<std::uint64_t> words) : bytes_(name) {
    bytes_.resize((name.size() + sizeof(std::uint64_t)) / sizeof(std::uint64_t) * sizeof(std::uint64_t));
    words_at_ = bytes_.size();
    for (const std::uint64_t word : words) bytes_.append(reinterpret_cast<const char*>(&word), sizeof word);
  }

  const std::string& text() const { return bytes_; }
  std::uint64_t word_at(std::size_t index) const { return words_at_ + index * sizeof(std::uint64_t); }

 private:
  std::string bytes_;
  std::size_t words_at_ = 0;
};

/// int mallctl(const char* name, void* old, size_t* old_bytes, void* fresh, size_t fresh_bytes).
rc::Call mallctl_call(std::uint64_t function, std::string_view name) {
  const CallBytes bytes(name, {no_answer, sizeof(std::uint64_t)});
  return {function, {CallBytes::name_at, bytes.word_at(0), bytes.word_at(1), 0, 0}, bytes.text(), {0, 1, 2}};
}

/// mallctl("epoch"): has jemalloc bring its statistics up to date, because a number is written.
rc::Call new_epoch_call(std::uint64_t function) {
  const CallBytes bytes("epoch", {1});
  return {function, {CallBytes::name_at, 0, 0, bytes.word_at(0), sizeof(std::uint64_t)}, bytes.text(), {0, 3}};
}

/// int MallocExtension_GetNumericProperty(const char* property, size_t* value).
rc::Call property_call(std::uint64_t function, std::string_view name) {
  const CallBytes bytes(name, {no_answer});
  return {function, {CallBytes::name_at, bytes.word_at(0)}, bytes.text(), {0, 1}};
}

/// The first word after the name, or nullopt if the function has not written it.
std::optional<std::uint64_t> answer_in(std::string_view name, const std::string& bytes) {
  const std::uint64_t at = CallBytes(name, {}).word_at(0);
  std::uint64_t answer = no_answer;
  if (bytes.size() >= at + sizeof answer) std::memcpy(&answer, bytes.data() + at, sizeof answer);
  return answer == no_answer ? std::nullopt : std::optional(answer);
}

/// A function of an allocator that a process has, as its malloc.
struct Found {
  std::uint64_t function = 0;
  const rc::Module* module = nullptr;
};

/// The zone of the function must be known as an allocator's: else a thread that holds its locks would not be seen.
std::optional<Found> find_allocator(const rc::Target& target, std::string_view name) {
  for (const rc::Module& module : target.modules()) {
    if (!find_function(target.memory(), module, "malloc")) continue;
    const auto function = find_function(target.memory(), module, name);
    if (function && target.zones().at(function->address) == rc::Zone::allocator)
      return Found{function->address, &module};
  }
  return std::nullopt;
}

using Answers = std::map<std::string, std::uint64_t, std::less<>>;

/// Makes the calls, which ask for `names`, in one stop of one thread. Unknown names have no answer.
Answers ask(rc::RemoteCaller& caller, const std::vector<std::string>& names, const std::vector<rc::Call>& calls) {
  Answers answers;
  caller.call_in_turn(calls, [&](std::size_t i, const std::string& bytes) {
    if (const auto answer = answer_in(names[i], bytes)) answers[names[i]] = *answer;
  });
  return answers;
}

template <std::size_t N>
void add_figures(AllocatorFigures& result, const Question (&questions)[N], const Answers& answers) {
  const auto page = answers.find(page_bytes_question);
  for (const Question& question : questions) {
    const auto answer = answers.find(question.name);
    if (answer == answers.end() || (question.is_in_pages && page == answers.end())) continue;
    const std::uint64_t unit = question.is_in_pages ? page->second : 1;
    result.figures.push_back({question.name, answer->second * unit, question.meaning});
    if (question.name == dirty_pages_question || question.name == free_pages_question)
      result.returnable_bytes = answer->second * unit;
  }
}

AllocatorFigures ask_jemalloc(rc::Target& target, const Found& found) {
  AllocatorFigures result{.allocator = "jemalloc", .library = found.module->name};
  std::vector<std::string> names{"epoch", page_bytes_question};
  for (const Question& question : jemalloc_questions) names.emplace_back(question.name);
  std::vector<rc::Call> calls{new_epoch_call(found.function)};
  for (std::size_t i = 1; i < names.size(); ++i) calls.push_back(mallctl_call(found.function, names[i]));
  result.kept = with_caller(target, "mallctl", [&](rc::RemoteCaller& caller) {
    add_figures(result, jemalloc_questions, ask(caller, names, calls));
  });
  result.returning_call = "mallctl(\"arena.4096.purge\", NULL, NULL, NULL, 0)";
  return result;
}

AllocatorFigures ask_tcmalloc(rc::Target& target, const Found& found) {
  AllocatorFigures result{.allocator = "tcmalloc", .library = found.module->name};
  std::vector<std::string> names;
  std::vector<rc::Call> calls;
  for (const Question& question : tcmalloc_questions) {
    names.emplace_back(question.name);
    calls.push_back(property_call(found.function, question.name));
  }
  result.kept = with_caller(target, "MallocExtension_GetNumericProperty", [&](rc::RemoteCaller& caller) {
    add_figures(result, tcmalloc_questions, ask(caller, names, calls));
  });
  result.returning_call = "MallocExtension_ReleaseFreeMemory()";
  return result;
}

}  // namespace

TrimResult call_malloc_trim(int pid) {
  rc::Target target(pid);
  const rc::Module* const libc = target.libc();
  const auto trim = libc != nullptr ? find_function(target.memory(), *libc, "malloc_trim") : std::nullopt;
  TrimResult result;
  result.kept = with_caller(target, "malloc_trim(0)", [&](rc::RemoteCaller& caller) {
    if (!trim) throw rc::Refused("process " + target.called() + " has a libc.so without malloc_trim");
    const process::Mapping before = read_sums(target);
    caller.call({trim->address, {0}}, {});
    const process::Mapping after = read_sums(target);
    result = {.resident_before = before.resident_bytes + before.hugetlb_bytes(),
              .resident_after = after.resident_bytes + after.hugetlb_bytes(),
              .anonymous_before = before.anonymous_bytes + before.hugetlb_bytes(),
              .anonymous_after = after.anonymous_bytes + after.hugetlb_bytes(),
              .swapped_before = before.swapped_bytes,
              .swapped_after = after.swapped_bytes};
  });
  return result;
}

std::optional<AllocatorFigures> ask_allocator(int pid) {
  rc::Target target(pid);
  if (const auto found = find_allocator(target, "mallctl")) return ask_jemalloc(target, *found);
  if (const auto found = find_allocator(target, "MallocExtension_GetNumericProperty"))
    return ask_tcmalloc(target, *found);
  return std::nullopt;
}

}  // namespace cmt::watch::explain
