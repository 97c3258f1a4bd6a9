/// Functions by which a program controls its recording by libcmttrace.so. C and C++.
///
/// This header needs no library: in a program that is not traced the calls do nothing. Any thread may call them, but
/// not inside a signal handler.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern void cmttrace_mark(const char* label) __attribute__((weak));
extern void cmttrace_pause(void) __attribute__((weak));
extern void cmttrace_resume(void) __attribute__((weak));

/// Puts a mark into the trace: cmt_mark("phase 2"). At most 1,024 bytes of UTF-8 are kept.
static inline void cmt_mark(const char* label) {
  if (cmttrace_mark) cmttrace_mark(label);
}

/// Stops recording in all threads until cmt_resume(). The trace has a mark `cmt_pause` and a mark `cmt_resume` where
/// they took effect. The trace does not have the frees during a pause. Such a block ends when its address is returned
/// again, and is counted as a repair. The other blocks keep their tags.
static inline void cmt_pause(void) {
  if (cmttrace_pause) cmttrace_pause();
}

static inline void cmt_resume(void) {
  if (cmttrace_resume) cmttrace_resume();
}

#ifdef __cplusplus
}
#endif
