// Opens modules on a thread of its own, as modules_ahead.h describes.

#include "toolkit/symbols/modules_ahead.h"

#include <cassert>
#include <exception>
#include <system_error>

namespace cmt::symbols {

ModulesAhead::~ModulesAhead() { end(); }

void ModulesAhead::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_at_end_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void ModulesAhead::open_modules_of(const StackTable& stacks) {
  assert(seen_frames_ <= stacks.frame_count());
  for (; seen_frames_ < stacks.frame_count(); ++seen_frames_) {
    const ModuleId id = stacks.frame(seen_frames_).module;
    if (id == 0 || last_ == id || !stacks.names(seen_frames_).empty()) continue;
    const Module& module = stacks.module(id);
    if (module.is_interpreter()) continue;
    last_ = id;
    if (known_.insert({module.path, module.build_id}).second) ask_for(module);
  }
}

void ModulesAhead::ask_for(const Module& module) {
  {
    const std::lock_guard lock(mutex_);
    if (is_at_end_) return;
    wanted_.push(module);
  }
  asked_.notify_one();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { open_all(); });
  } catch (const std::system_error&) {
    is_at_end_ = true;
  }
}

void ModulesAhead::open_all() {
  std::uint64_t bytes = 0;
  std::unique_lock lock(mutex_);
  while (bytes < bytes_max) {
    asked_.wait(lock, [this] { return is_at_end_ || !wanted_.empty(); });
    if (wanted_.empty()) return;
    const Module module = std::move(wanted_.front());
    wanted_.pop();
    lock.unlock();
    std::unique_ptr<ModuleFile> file;
    try {
      file = std::make_unique<ModuleFile>(module, options_.debug_directories, options_.start, options_.root);
      bytes += file->open_symbols();
    } catch (const std::exception&) {
      file.reset();
    }
    lock.lock();
    if (file) files_.emplace(std::pair(module.path, module.build_id), std::move(file));
  }
}

std::unique_ptr<ModuleFile> ModulesAhead::take(const Module& module) {
  end();
  assert(!thread_.joinable());
  const auto found = files_.find({module.path, module.build_id});
  return found == files_.end() ? nullptr : std::move(found->second);
}

}  // namespace cmt::symbols
