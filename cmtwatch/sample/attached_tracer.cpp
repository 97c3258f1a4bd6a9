// Starts cmttrace --attach with its standard error in a pipe, and reads its lines to know what it does.
#include "cmtwatch/sample/attached_tracer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "toolkit/launch/spawn.h"
#include "toolkit/launch/tracer.h"

namespace cmt::watch {
namespace {

/// Lines of cmttrace (cmttrace/attach_command.cpp).
constexpr const char *begin_line = "records process ", *program_has_ended = " has ended", *next_line = "next: ";

/// Returns a line of cmttrace without its program name, which ours replaces.
std::string without_name(const std::string& line) {
  constexpr std::string_view name = "cmttrace: ";
  return line.starts_with(name) ? line.substr(name.size()) : line;
}

}  // namespace

AttachedTracer::AttachedTracer(int pid, const TraceOptions& options, const Complain& complain)
    : WatchedTraces(options), pid_(pid), target_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
  start(options);
  await_begin(complain);
}

AttachedTracer::~AttachedTracer() {
  if (cmttrace_ > 0) await_end(nullptr);
}

void AttachedTracer::start(const TraceOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  said_ = process::Fd(ends[0]);
  const process::Fd error(ends[1]), nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  cmttrace_ = launch::spawn(
      {.words = {launch::tool_path("cmttrace"), "--attach=" + std::to_string(pid_),
                 options.samples() ? "--sample-bytes=" + options.sample_bytes : "--calls", "--time",
                 std::string("--follow=") + (options.follow ? "yes" : "no"), "--output=" + options.output},
       .environment = {{"CMTTRACE_STATUS", status_setting()}},
       .input_fd = nothing.get(),
       .output_fd = nothing.get(),
       .error_fd = error.get(),
       .ends_with_us = true});
}

void AttachedTracer::await_begin(const Complain& complain) {
  const auto is_begin = [](const std::string& line) { return line.starts_with(begin_line); };
  auto begin = lines_.end();
  while ((begin = std::find_if(lines_.begin(), lines_.end(), is_begin)) == lines_.end() && read_lines()) continue;
  if (begin != lines_.end()) {
    lines_.erase(begin);
    return;
  }
  await_end(nullptr);
  const std::string why = lines_.empty() ? "cmttrace has ended" : lines_.back();
  for (std::size_t i = 0; i + 1 < lines_.size(); ++i) complain(lines_[i]);
  throw std::runtime_error(why);
}

/// Waits for text. Returns false if there will be no more.
bool AttachedTracer::read_lines() {
  char bytes[4096];
  const ssize_t got = read(said_.get(), bytes, sizeof bytes);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  text_.append(bytes, static_cast<std::size_t>(got));
  for (std::size_t end; (end = text_.find('\n')) != text_.npos; text_.erase(0, end + 1))
    lines_.push_back(without_name(text_.substr(0, end)));
  return true;
}

bool AttachedTracer::is_target_there() const {
  pollfd ended{.fd = target_.get(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) == 0;
}

bool AttachedTracer::has_said(const std::string& text) const {
  return std::any_of(lines_.begin(), lines_.end(), [&](const std::string& line) { return line.ends_with(text); });
}

/// Does not signal cmttrace if the process has ended: cmttrace waits for the trace then, and a signal would end the
/// wait.
void AttachedTracer::await_end(command::Interrupts* interrupts) {
  pollfd waits[] = {{.fd = said_.get(), .events = POLLIN, .revents = 0},
                    {.fd = interrupts != nullptr ? interrupts->fd() : -1, .events = POLLIN, .revents = 0}};
  if (is_target_there()) kill(cmttrace_, SIGTERM);
  for (bool goes_on = true; goes_on;) {
    poll(waits, std::size(waits), -1);
    if (waits[0].revents != 0) goes_on = read_lines();
    if (waits[1].revents != 0 && interrupts->take() != SIGWINCH) kill(cmttrace_, SIGTERM);
  }
  while (waitpid(cmttrace_, &wait_status_, 0) < 0 && errno == EINTR) continue;
  cmttrace_ = -1;
}

void AttachedTracer::check_ending() const {
  const launch::Ended ended = launch::ended_of(wait_status_);
  if (ended.signal != 0)
    throw std::runtime_error("cmttrace was ended by " + launch::ending_text(ended) +
                             "; 'cmttrace --detach=" + std::to_string(pid_) + "' ends the recording");
  if (ended.status != 0) throw std::runtime_error(lines_.empty() ? "the recording has failed" : lines_.back());
}

std::vector<std::string> AttachedTracer::end(command::Interrupts& interrupts) {
  // The process may have executed another program, or have been let go of by another cmttrace.
  siginfo_t ending{};
  waitid(P_PID, static_cast<id_t>(cmttrace_), &ending, WEXITED | WNOHANG | WNOWAIT);
  const bool has_ended_alone = ending.si_pid == cmttrace_;
  await_end(&interrupts);
  if (has_ended_alone && !has_said(program_has_ended)) lose_after_last_event(pid_);
  check_ending();
  std::erase_if(lines_, [](const std::string& line) { return line.starts_with(next_line); });
  return std::move(lines_);
}

}  // namespace cmt::watch
