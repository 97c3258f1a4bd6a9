// A module for stack_modules.cpp, in two variants whose code has the same addresses, but frames of different sizes.
void other_function(void (*function)(void));
void call_other(void (*function)(void));

// By the procedure linkage table: the first call goes through the loader.
__attribute__((noinline)) void call_other(void (*function)(void)) {
  volatile char block[100];
  block[0] = 0;
  other_function(function);
  block[1] = block[0];
}

#define TEXT(number) #number
#define CALL_BACK(bytes) \
  ".globl call_back\n"                                      \
  ".type call_back, @function\n"                            \
  "call_back:\n"                                            \
  ".cfi_startproc\n"                                        \
  "sub $" TEXT(bytes) ", %rsp\n"                            \
  ".cfi_adjust_cfa_offset " TEXT(bytes) "\n"                \
  "call *%rdi\n"                                            \
  "add $" TEXT(bytes) ", %rsp\n"                            \
  ".cfi_adjust_cfa_offset -" TEXT(bytes) "\n"               \
  "ret\n"                                                   \
  ".cfi_endproc\n"                                          \
  ".size call_back, . - call_back\n"

#ifdef SECOND
__asm__(CALL_BACK(88));
void other_function(void (*function)(void)) {
  function();
  __asm__ volatile("" ::: "memory");
}
#else
__asm__(CALL_BACK(24));
#endif
