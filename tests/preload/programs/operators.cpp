// operators WHAT: calls operator new and delete in all their forms, with a size for each, also where there is no
// memory.
#include <sys/syscall.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

namespace {

constexpr std::size_t huge = SIZE_MAX / 4;
volatile std::size_t too_much = huge;
int handler_calls = 0;

// The size of the block that the handler frees, so that the retry succeeds.
void make_room() {
  std::free(std::malloc(80001));
  if (++handler_calls == 2) throw std::bad_alloc();
}

void all() {
  ::operator delete(::operator new(70001));
  ::operator delete (::operator new(70002), std::size_t{70002});
  ::operator delete(::operator new(70003, std::nothrow), std::nothrow);
  ::operator delete (::operator new (70004, std::align_val_t{64}), std::align_val_t{64});
  ::operator delete (::operator new (70005, std::align_val_t{128}), std::size_t{70005}, std::align_val_t{128});
  ::operator delete (::operator new (70006, std::align_val_t{64}, std::nothrow), std::align_val_t{64}, std::nothrow);
  ::operator delete[](::operator new[](70007));
  ::operator delete[](::operator new[](70008), std::size_t{70008});
  ::operator delete[](::operator new[](70009, std::nothrow), std::nothrow);
  ::operator delete[](::operator new[](70010, std::align_val_t{64}), std::align_val_t{64});
  ::operator delete[](::operator new[](70011, std::align_val_t{64}), std::size_t{70011}, std::align_val_t{64});
  ::operator delete[](::operator new[](70012, std::align_val_t{64}, std::nothrow), std::align_val_t{64}, std::nothrow);
  ::operator delete(nullptr);
}

// Leaves words on the stack that look like the frame of a signal's handler: the address that handlers return to, and
// addresses of the stack. Programs with handlers leave such words, in calls of sigaction.
__attribute__((noinline)) void leave_words(std::uintptr_t handlers_return) {
  volatile std::uintptr_t words[512];
  for (std::size_t i = 0; i < std::size(words); i += 2) {
    words[i] = handlers_return;
    words[i + 1] = reinterpret_cast<std::uintptr_t>(&words[0]);
  }
}

// The functions that an operator calls are looked at in its first call.
int beside_words() {
  struct {
    std::uintptr_t handler, flags, restorer;
    std::uint64_t mask;
  } action{};
  std::signal(SIGUSR1, [](int) {});
  if (syscall(SYS_rt_sigaction, SIGUSR1, nullptr, &action, sizeof action.mask) != 0) return 1;
  leave_words(action.restorer);
  void* const block = ::operator new[](70013, std::nothrow);
  leave_words(action.restorer);
  ::operator delete[](block, std::nothrow);
  return 0;
}

// An exception passes the tracer; later calls are recorded, deeper on the stack or not.
__attribute__((noinline)) void deeper(int levels) {
  volatile char frame[512];
  frame[0] = 0;
  if (levels > frame[0]) return deeper(levels - 1);
  std::free(std::malloc(80002));
}

sigjmp_buf out;

// The first call of the handler makes operator new try again; the second leaves it by longjmp.
void jump_out() {
  std::free(std::malloc(80005));
  if (++handler_calls % 2 == 0) siglongjmp(out, 1);
}

void throw_at_once() {
  std::free(std::malloc(80006));
  throw std::bad_alloc();
}

// Each form without memory, with a handler that leaves it in either way; later calls are recorded.
int left() {
  volatile int jumps = 0;
  std::set_new_handler(jump_out);
  if (sigsetjmp(out, 1) == 0) ::operator delete(::operator new(too_much));
  jumps = jumps + 1;
  std::free(std::malloc(80007));
  if (jumps == 1 && sigsetjmp(out, 1) == 0) ::operator delete[](::operator new[](too_much, std::align_val_t{256}));
  jumps = jumps + 1;
  std::free(std::malloc(80008));
  std::set_new_handler(throw_at_once);
  int wrong = jumps < 2;
  wrong += ::operator new(too_much, std::nothrow) != nullptr;
  wrong += ::operator new[](too_much, std::align_val_t{64}, std::nothrow) != nullptr;
  try {
    ::operator delete(::operator new (too_much, std::align_val_t{64}));
    ++wrong;
  } catch (const std::bad_alloc&) {
    deeper(3);
  }
  return wrong;
}

int thrown() {
  int caught = 0;
  try {
    ::operator delete(::operator new(too_much));
  } catch (const std::bad_alloc&) {
    ++caught;
  }
  std::free(std::malloc(80003));
  try {
    ::operator delete(::operator new (70013, std::align_val_t{3 + too_much - huge}));
  } catch (const std::bad_alloc&) {
    ++caught;
  }
  deeper(0);
  deeper(50);
  if (::operator new(too_much, std::nothrow) == nullptr) ++caught;
  std::set_new_handler(make_room);
  try {
    ::operator delete(::operator new(too_much));
  } catch (const std::bad_alloc&) {
    ++caught;
  }
  std::free(std::malloc(80004));
  return caught == 4 ? 0 : caught + 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "all") == 0) return all(), 0;
  if (argc == 2 && std::strcmp(argv[1], "beside") == 0) return beside_words();
  if (argc == 2 && std::strcmp(argv[1], "thrown") == 0) return thrown();
  if (argc == 2 && std::strcmp(argv[1], "left") == 0) return left();
  return 2;
}
