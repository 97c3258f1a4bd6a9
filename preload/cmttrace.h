/// What a program can say to libcmttrace.so while it is recorded. C and C++.
///
/// Include this; nothing is linked: where the program is not traced, the functions are not there, and the calls below
/// do nothing. Any thread may call them, at any time but inside a signal handler.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern void cmttrace_mark(const char* label) __attribute__((weak));
extern void cmttrace_pause(void) __attribute__((weak));
extern void cmttrace_resume(void) __attribute__((weak));

/// Writes a mark into the trace: `mark("phase 2")`. At most 1,024 bytes of UTF-8 are kept.
static inline void cmt_mark(const char* label) {
  if (cmttrace_mark) cmttrace_mark(label);
}

/// Records nothing from here on, in no thread, until cmt_resume(). Where both took effect there is a mark, `cmt_pause`
/// and `cmt_resume`. Blocks that live through a pause keep their tags; those that end in it are ended, at the latest,
/// when their address is used again, and that is counted as a repair.
static inline void cmt_pause(void) {
  if (cmttrace_pause) cmttrace_pause();
}

static inline void cmt_resume(void) {
  if (cmttrace_resume) cmttrace_resume();
}

#ifdef __cplusplus
}
#endif
