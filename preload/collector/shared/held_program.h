// A program that has handed over its recording, for as long as it is short.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/hand_over.h"

namespace cmt::collector {

/// The descriptors of a message. They are closed with it.
class Descriptors {
 public:
  Descriptors() = default;
  ~Descriptors();
  Descriptors(Descriptors&& other) noexcept : all_(std::move(other.all_)) {}
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  Descriptors& operator=(Descriptors&&) = delete;

  void add(int descriptor) { all_.push_back(descriptor); }
  const std::vector<int>& all() const { return all_; }

 private:
  std::vector<int> all_;
};

/// The message of a program, and its descriptors.
struct Handed {
  HandOver message{};
  Descriptors descriptors{};
};

/// Receives the message of a connection. Returns nothing if this collector cannot serve its sender: a process of
/// another user, with other settings, or in another namespace of files or processes.
std::optional<Handed> receive(int connection);

/// Takes the recording, answers, and sees to it that the trace is written. Returns when the trace is complete, or
/// another process has it.
///
/// Nothing needs to be done while a program is young, because its first ring has room for 16,384 records. So the
/// calling thread only raises the clock, until one of two things happens:
///
/// - The program has ended. The thread writes its trace.
/// - The program is no longer short, has filled half of a ring, or needs more than that. A collector of its own is
///   started for it (`cmttrace-collector --attach`), which finds the rings as the program has left them.
///
/// `stops`: the second thing happens at once.
void serve_program(int connection, const Handed& handed, const Settings& settings, const std::atomic<bool>& stops);

}  // namespace cmt::collector
