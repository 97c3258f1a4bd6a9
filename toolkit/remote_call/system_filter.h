/// Predicts whether a filter of system calls (seccomp) lets a thread make the calls of an injected function.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cmt::remote_call {

/// The threads that make a system call.
enum class CallUse {
  load,       ///< the one that is made to load libcmttrace.so
  record,     ///< every recorded thread
  touch,      ///< the same with touched pages
  allocator,  ///< one that is made to call a function of its allocator
};

/// A system call as filters see it.
struct FilteredCall {
  const char* name;
  int number;
  std::array<std::uint64_t, 6> arguments{};
  CallUse use = CallUse::load;
};

/// Returns the answer of a filter of system calls (seccomp(2), a classic BPF program): SECCOMP_RET_ALLOW or another
/// action. Returns nullopt if the kernel would not accept the program.
std::optional<std::uint32_t> run_filter(std::span<const sock_filter> program, const FilteredCall& call,
                                        std::uint64_t instruction_pointer);

/// The filters of a thread that is stopped by ptrace, the last one first.
struct SystemFilters {
  std::vector<std::vector<sock_filter>> programs;
  int error = 0;  ///< an errno: why they cannot be read; 0: they have been
};

SystemFilters read_filters(int tid);

/// The calls that the filters would answer with a signal, and those that they would refuse.
struct FilterVerdict {
  std::string killed_by;  ///< the first call's name; empty: none
  std::string refused;    ///< of those without which nothing can be done
};

FilterVerdict judge_filters(const SystemFilters& filters,
                            const std::vector<CallUse>& uses = {CallUse::load, CallUse::record});

}  // namespace cmt::remote_call
