// The places of the probes, with their notes in the format of systemtap's sys/sdt.h, version 3. A profiler may read the
// arguments from the note, or by the C calling convention: they are in the registers of both.
#include "preload/program/sampling/probes.h"

#define PROBE_SECTION __attribute__((section(".probes"), used))
PROBE_SECTION volatile uint16_t otel_memory_alloc_semaphore;
PROBE_SECTION volatile uint16_t otel_memory_free_semaphore;

// A note: sizes of name, description and type; the name; the probe's address, the base's, and the semaphore's;
// provider, probe and arguments. A loader that moves the file's addresses (prelink) is noticed by the base.
#define NOTE(name, arguments)                                             \
  "990: nop\n"                                                            \
  ".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
  ".balign 4\n"                                                           \
  ".4byte 992f-991f, 994f-993f, 3\n"                                      \
  "991: .asciz \"stapsdt\"\n"                                             \
  "992: .balign 4\n"                                                      \
  "993: .8byte 990b, _.stapsdt.base, otel_memory_" name                   \
  "_semaphore\n"                                                          \
  ".asciz \"otel_memory\", \"" name "\", \"" arguments                    \
  "\"\n"                                                                  \
  "994: .balign 4\n"                                                      \
  ".popsection\n"                                                         \
  ".ifndef _.stapsdt.base\n"                                              \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
  ".weak _.stapsdt.base\n"                                                \
  ".hidden _.stapsdt.base\n"                                              \
  "_.stapsdt.base: .space 1\n"                                            \
  ".size _.stapsdt.base, 1\n"                                             \
  ".popsection\n"                                                         \
  ".endif\n"

#if defined __x86_64__
#define ARGUMENT(name) "8@%%" name
#define FIRST "rdi"
#define SECOND "rsi"
#define THIRD "rdx"
#else
#define ARGUMENT(name) "8@" name
#define FIRST "x0"
#define SECOND "x1"
#define THIRD "x2"
#endif

__attribute__((noinline)) void probe_alloc_fire(const void* block, uint64_t size, uint64_t weighted_bytes) {
  register const void* first __asm__(FIRST) = block;
  register uint64_t second __asm__(SECOND) = size;
  register uint64_t third __asm__(THIRD) = weighted_bytes;
  __asm__ volatile(NOTE("alloc", ARGUMENT(FIRST) " " ARGUMENT(SECOND) " " ARGUMENT(THIRD))
                   :
                   : "r"(first), "r"(second), "r"(third)
                   : "memory");
}

__attribute__((noinline)) void probe_free_fire(const void* block) {
  register const void* first __asm__(FIRST) = block;
  __asm__ volatile(NOTE("free", ARGUMENT(FIRST)) : : "r"(first) : "memory");
}
