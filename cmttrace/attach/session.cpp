// One attach, step by step (doc/design/attach.md). Slow work is done before a thread is stopped, or after it
// goes on: reading the library, making the trace's files, starting the collector.

#include "cmttrace/attach/session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "cmttrace/attach/attach_file.h"
#include "cmttrace/attach/recording/collector_start.h"
#include "cmttrace/attach/recording/library_settings.h"
#include "cmttrace/attach/thread_storage.h"
#include "toolkit/remote_call/remote_caller.h"

namespace cmt::attach {

static Detached detach_locked(remote_call::Target& target);

namespace {

constexpr std::chrono::seconds leave_within(20);

/// Throws Refused for processes that cannot load libcmttrace.so.
void check_loads_libraries(const remote_call::Target& target) {
  using remote_call::CLibrary, remote_call::Refused;
  const std::string who = "process " + target.called();
  if (target.has_begun_another_program()) throw Refused(who + " has just begun another program: try again");
  const CLibrary library = target.c_library();
  if (library == CLibrary::musl)
    throw Refused(who +
                  " uses musl, whose loader loads libcmttrace.so only when a program starts: start it by cmttrace");
  if (library == CLibrary::linked_statically)
    throw Refused(who + " is linked statically: nothing can be loaded into it; link it dynamically to record it");
  if (library == CLibrary::unknown) throw Refused(who + " has not loaded a libc.so of glibc");
  const remote_call::TargetFunctions& functions = target.functions();
  if (functions.dlopen == 0 || functions.system_call == 0 || functions.return_trampoline == 0)
    throw Refused(who + " has a libc.so that is not known here: no dlopen was found in it");
}

/// Throws Refused for processes that a detach accepts but an attach does not: they cannot load libraries, are stopped,
/// recorded by a preload, or have no /proc.
void check_attachable(const remote_call::Target& target) {
  using remote_call::Refused;
  const std::string who = "process " + target.called();
  check_loads_libraries(target);
  if (target.pid() == getpid()) throw Refused(who + " is this cmttrace, which cannot attach to itself");
  check_callable(target);
  for (const remote_call::Module& module : target.modules()) {
    if (process::is_tracer(module.name) && module.name != process::attached_memory)
      throw Refused(who + " is recorded already: it was started with " + module.name);
  }
  struct statfs proc {};
  const std::string folder = process::path_of(target.pid(), "root/proc");
  if (statfs(folder.c_str(), &proc) != 0 || proc.f_type != PROC_SUPER_MAGIC)
    throw Refused(who + " sees no /proc, through which libcmttrace.so is loaded: mount it there");
}

/// The rings of a process that has been attached to, mapped here.
class TakenRings {
 public:
  explicit TakenRings(process::Fd fd) : fd_(std::move(fd)) {
    void* const at = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "rings");
    control_ = static_cast<Control*>(at);
  }
  ~TakenRings() {
    if (control_ != nullptr) munmap(control_, sizeof(Control));
  }
  TakenRings(const TakenRings&) = delete;
  TakenRings& operator=(const TakenRings&) = delete;

  int fd() const { return fd_.get(); }
  Control& control() { return *control_; }

 private:
  process::Fd fd_;
  Control* control_ = nullptr;
};

/// Copies the fields that only the library knows. The process can forge them. So none is a path, and describe() sets
/// the process by which the collector knows it.
void copy_numbers(Control& to, const Control& from) {
  to.process = from.process;
  to.start_stamp = from.start_stamp;
  to.start_ns = from.start_ns;
  to.start_wall = from.start_wall;
  to.rings_limit = from.rings_limit;
  to.forked = from.forked;
  to.stacks_at = from.stacks_at;
  to.stacks_of_frees = from.stacks_of_frees;
  to.touched_min = from.touched_min;
  to.sample_bytes = from.sample_bytes;
  copy_text(to.allocator, std::string(from.allocator, strnlen(from.allocator, sizeof from.allocator)));
}

/// Writes the fields that the library left empty, because it does not know our files.
void describe(Control& control, const remote_call::Target& target, const TraceFiles& files, const AttachPlan& plan) {
  files.describe(control);
  copy_text(control.program, program_of(target.pid()));
  copy_text(control.command, command_of(target.pid()));
  copy_text(control.status_path, plan.status_path);
  control.process_outside = static_cast<std::uint64_t>(target.pid());
}

/// Writes the status file's first line about a process.
void begin_status(const Control& control, const TraceFiles& files, const AttachPlan& plan) {
  if (plan.status_path.empty()) return;
  std::ofstream(plan.status_path, std::ios::app) << "pid=" + std::to_string(process_of(&control)) +
                                                        " start_ns=" + std::to_string(control.start_ns) +
                                                        " begun=1 path=" + files.first_path() + "\n";
}

/// The address of a function that libcmttrace exports to us.
std::uint64_t function_of_stub(const remote_call::Target& target, const remote_call::Module& stub, const char* name) {
  const auto found = remote_call::find_function(target.memory(), stub, name);
  if (!found) remote_call::refuse(target, std::string("the library of an earlier attach lacks ") + name);
  return found->address;
}

/// Returns the descriptors of the process that are our files in memory.
std::set<int> memory_files(const remote_call::Target& target) {
  std::set<int> files;
  const std::string folder = process::path_of(target.pid(), "fd");
  for (const int fd : process::numbers_in(folder)) {
    std::error_code error;
    const auto link = std::filesystem::read_symlink(folder + "/" + std::to_string(fd), error);
    if (!error && link == process::attached_memory) files.insert(fd);
  }
  return files;
}

class AttachRun {
 public:
  AttachRun(remote_call::Target& target, TraceFiles& files, const AttachPlan& plan)
      : target_(target),
        files_(files),
        plan_(plan),
        caller_(target, {.ignores_unread = plan.ignores_filter,
                         .unread_remedy = "CAP_SYS_ADMIN is needed, or --force, if the filter ends nobody"}) {}

  Attached run() {
    check();
    close_what_is_left();
    const int fd = make_file();
    try {
      load_from(fd);
    } catch (const remote_call::CallStuck&) {
      throw;
    } catch (const std::exception&) {
      if (memory_files(target_).contains(fd)) close_descriptor(fd);
      throw;
    }
    return start();
  }

 private:
  void check() {
    check_attachable(target_);
    if (plan_.children) check_children(target_, *plan_.children);
    library_ = process::read_file(plan_.library);
    build_id_ = remote_call::build_id_of(library_);
    const auto found = find_attach(target_);
    if (found && (found->head.state == attach_recording || found->head.state == attach_has_rings))
      throw remote_call::Refused("process " + target_.called() + " is recorded already; 'cmttrace --detach=" +
                                 std::to_string(target_.pid()) + "' ends that");
    // The next recording takes the place of the last one's memory.
    if (found && found->head.state == attach_detached && !detach_locked(target_).is_released)
      remote_call::refuse(target_, "a thread of it has not left the tracer of the last recording; try again");
    caller_.check_filters(records_touched_pages(target_, plan_.settings));
    const remote_call::Module* const stub = target_.stub();
    if (stub == nullptr) return;
    if (remote_call::build_id_of(target_.memory(), *stub) != build_id_)
      remote_call::refuse(
          target_, "another version's libcmttrace.so has been loaded by an earlier attach, and stays until it ends");
    attach_function_ = function_of_stub(target_, *stub, "cmttrace_attach");
  }

  /// Closes descriptors that an attach left open because it was killed between two calls.
  void close_what_is_left() {
    for (const int fd : memory_files(target_)) close_descriptor(fd);
  }

  void close_descriptor(int fd) {
    caller_.call({target_.functions().system_call, {SYS_close, static_cast<std::uint64_t>(fd)}},
                 {.is_done = [&] { return !memory_files(target_).contains(fd); }});
  }

  /// Returns the descriptor of a file in memory, which the process has made.
  int make_file() {
    std::set<int> made;
    caller_.call(
        {target_.functions().system_call, {SYS_memfd_create, 0, MFD_CLOEXEC}, std::string("cmttrace\0", 9), {1}},
        {.is_done = [&] { return !(made = memory_files(target_)).empty(); }});
    made = memory_files(target_);
    if (made.empty()) remote_call::refuse(target_, "it cannot make a file in memory (memfd_create)");
    return *made.begin();
  }

  /// Returns thread_word_at of struct Attach. A library that is loaded already keeps its own.
  std::uint64_t place_thread_variables() {
    if (attach_function_ != 0) library_.clear();
    const bool has_room = !library_.empty() && has_thread_storage(target_, caller_.calling_thread());
    return has_room && move_thread_variables(library_) ? thread_id_at : 0;
  }

  void load_from(int fd) {
    {
      const std::uint64_t thread_word_at = place_thread_variables();
      const process::Fd copy = target_.take_descriptor(fd);
      file_ = std::make_shared<AttachFile>(
          copy.get(), library_, build_id_,
          settings_for_library(plan_.settings, plan_.children ? &*plan_.children : nullptr), program_of(target_.pid()),
          thread_word_at);
    }
    const remote_call::TargetFunctions& functions = target_.functions();
    const remote_call::Call load{
        functions.dlopen, {0, RTLD_NOW | functions.dlopen_flags}, "/proc/self/fd/" + std::to_string(fd) + '\0', {0}};
    const remote_call::Call again{attach_function_, {static_cast<std::uint64_t>(fd)}};
    const remote_call::Call& wanted = attach_function_ != 0 ? again : load;
    const auto is_done = [this] { return file_->state() == attach_recording || file_->state() == attach_failed; };
    const auto see = [this] { take_rings(); };
    caller_.call(wanted, {is_done, see});
    if (file_->state() == attach_begins) caller_.call(wanted, {is_done, see, true});  // to see why
    if (file_->state() != attach_recording) remote_call::refuse(target_, why_not_recording());
  }

  /// The library waits for this for a second, and gives up then.
  void take_rings() {
    if (rings_ || !taking_failed_.empty() || file_->state() != attach_has_rings) return;
    try {
      rings_.emplace(target_.take_descriptor(file_->rings_descriptor()));
      file_->announce_rings_taken();
    } catch (const std::system_error& error) {
      taking_failed_ = error.what();
    }
  }

  std::string why_not_recording() const {
    if (!taking_failed_.empty()) return taking_failed_;
    if (!file_->message().empty()) return file_->message();
    const std::string why = caller_.failed().empty() ? "" : " (" + caller_.failed() + ")";
    return "its dynamic loader has refused libcmttrace.so" + why;
  }

  Attached start() {
    Attached attached{
        .pauses = caller_.pauses(), .words = file_->words(), .message = [file = file_] { return file->message(); }};
    try {
      const auto description = std::make_unique<Control>();
      copy_numbers(*description, rings_->control());
      describe(*description, target_, files_, plan_);
      begin_status(*description, files_, plan_);
      describe(rings_->control(), target_, files_, plan_);
      std::vector<int> outputs;
      for (const process::Fd& fd : files_.descriptors()) outputs.push_back(fd.get());
      attached.collector =
          start_collector(plan_.collector, rings_->fd(), target_.descriptor(), outputs, *description, plan_.settings);
    } catch (const std::exception&) {
      detach_locked(target_);
      throw;
    }
    files_.keep();
    return attached;
  }

  remote_call::Target& target_;
  TraceFiles& files_;
  const AttachPlan& plan_;
  remote_call::RemoteCaller caller_;
  std::string library_, build_id_;
  std::uint64_t attach_function_ = 0;  ///< in a library that is loaded already; 0: it is not
  std::shared_ptr<AttachFile> file_;
  std::optional<TakenRings> rings_;
  std::string taking_failed_;
};

/// Returns the current state in struct Attach, or nullopt if it is not mapped any more.
std::optional<AttachHead> head_at(const remote_call::Target& target, std::uint64_t address) {
  const auto head = target.memory().read<AttachHead>(address);
  const bool is_there = head && std::memcmp(head->magic, attach_magic, sizeof head->magic) == 0;
  return is_there ? head : std::nullopt;
}

}  // namespace

Attached attach(remote_call::Target& target, TraceFiles& files, const AttachPlan& plan) {
  check_attachable(target);
  const remote_call::TargetLock lock(target);
  const std::size_t mappings = target.maps().size();
  target.read_maps_again();
  if (target.maps().size() != mappings) target.read_again();  // another cmttrace may have loaded the library
  return AttachRun(target, files, plan).run();
}

static Detached detach_locked(remote_call::Target& target) {
  target.read_again();
  const auto found = find_attach(target);
  const remote_call::Module* const stub = target.stub();
  if (!found || stub == nullptr)
    throw remote_call::Refused("process " + target.called() + " is not recorded by an attach");
  remote_call::RemoteCaller caller(target, {.ignores_unread = true});
  const auto head = [&] { return head_at(target, found->address); };
  const auto call = [&](const char* name, const std::function<bool()>& is_done) {
    caller.call({function_of_stub(target, *stub, name)}, {.is_done = is_done});
  };
  const auto is_recording = [&] { return head() && head()->state == attach_recording; };
  constexpr int tries_max = 20;  // a thread of the program may be changing words
  for (int i = 0; i < tries_max && is_recording(); ++i) call("cmttrace_detach", [&] { return !is_recording(); });
  if (is_recording())
    throw remote_call::Refused("process " + target.called() + " cannot be detached from now; try again");
  Detached detached;
  detached.is_released = caller.threads().await_none_in_tracer(remote_call::SafeThreads::Clock::now() + leave_within);
  const auto is_given_back = [&] {  // unmapped: it says attach_released just before
    const auto now = head();
    return !now || (now->state != attach_detached && now->state != attach_released);
  };
  if (detached.is_released) call("cmttrace_release", is_given_back);
  detached.pauses = caller.pauses();
  return detached;
}

Detached detach(remote_call::Target& target) {
  const remote_call::TargetLock lock(target);
  return detach_locked(target);
}

bool is_attached(remote_call::Target& target) {
  target.read_maps_again();
  const auto found = find_attach(target);
  return found && (found->head.state == attach_recording || found->head.state == attach_has_rings);
}

}  // namespace cmt::attach
