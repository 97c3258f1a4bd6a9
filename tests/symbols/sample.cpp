// Prints some addresses of its own code, and what symbols should say of each: the functions, the innermost first, with
// their lines.
//
//     bias   555555554000
//     return 555555555234  inner(int) 31  outer(int) 38
//     exact  555555555200  outer(int)

#include <link.h>

#include <cstdio>

// GCC does not state the mangled names of inlined lambdas.
#ifdef __clang__
#define LAMBDA "with_lambda()::$_0::operator()(int) const"
#else
#define LAMBDA "with_lambda()::{lambda}::operator()"
#endif

namespace {

[[gnu::noinline]] void here(const char* function, int line, const char* outer = nullptr, int outer_line = 0) {
  const void* const returns_to = __builtin_return_address(0);
  std::printf("return\t%lx\t%s\t%d", reinterpret_cast<unsigned long>(returns_to), function, line);
  if (outer != nullptr) std::printf("\t%s\t%d", outer, outer_line);
  std::printf("\n");
}

int print_bias(dl_phdr_info* program, std::size_t, void*) {
  std::printf("bias\t%lx\n", static_cast<unsigned long>(program->dlpi_addr));
  return 1;  // the first is the program
}

volatile int count;  // read after each call, so that no call is a jump

}  // namespace

[[gnu::always_inline]] inline int inner(const char* outer, int outer_line) {
  here("inner(char const*, int)", __LINE__, outer, outer_line);
  return count;
}

[[gnu::noinline]] int outer(int number) {
  const int first = inner("outer(int)", __LINE__);
  return first + number + count;
}

namespace shapes {

template <class T>
struct Box {
  [[gnu::noinline]] explicit Box(T first) : value(first) {
    here("shapes::Box<int>::Box(int)", __LINE__);
    value += count;
  }
  [[gnu::always_inline]] Box(T first, int line) : value(first) {
    here("shapes::Box<int>::Box(int, int)", __LINE__, "shapes::make_box()", line);
    value += count;
  }
  T value;
};

[[gnu::noinline]] int make_box() {
  const Box<int> box(1, __LINE__);
  return box.value + Box<int>(2).value;
}

}  // namespace shapes

extern "C" [[gnu::noinline]] int plain_c() {
  here("plain_c", __LINE__);
  return count;
}

[[gnu::noinline]] int with_lambda() {
  const auto part = [](int line) {
    here(LAMBDA, __LINE__, "with_lambda()", line);
    return count;
  };
  return part(__LINE__) + count;
}

// A function of assembly that states neither type nor size.
__asm__(".text\n.globl unsized_code\nunsized_code:\nnop\nnop\nret\n");
extern "C" void unsized_code();

int main() {
  dl_iterate_phdr(print_bias, nullptr);
  std::printf("exact\t%lx\touter(int)\n", reinterpret_cast<unsigned long>(&outer));
  std::printf("exact\t%lx\tunsized_code\n", reinterpret_cast<unsigned long>(&unsized_code) + 1);
  return outer(1) + shapes::make_box() + plain_c() + with_lambda() == -1;
}
