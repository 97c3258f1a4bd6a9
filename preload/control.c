// The other side of cmttrace.h.
#include "preload/interpose.h"
#include "preload/real.h"
#include "preload/record.h"

EXPORT void cmttrace_mark(const char* label);
EXPORT void cmttrace_pause(void);
EXPORT void cmttrace_resume(void);

void cmttrace_mark(const char* label) {
  if (real_ready() && label) record_label(kind_mark, label);
}

void cmttrace_pause(void) {
  if (real_ready()) record_pause(true);
}

void cmttrace_resume(void) {
  if (real_ready()) record_pause(false);
}
