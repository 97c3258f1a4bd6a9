// The other side of cmttrace.h.
#include "preload/program/interpose.h"
#include "preload/program/real.h"
#include "preload/program/record.h"
#include "preload/words.h"

EXPORT void cmttrace_mark(const char* label);
EXPORT void cmttrace_pause(void);
EXPORT void cmttrace_resume(void);

void record_label(enum Kind kind, const char* label) {
  if (!record_allowed()) return;
  char words[label_bytes_max + 1] = {0};
  memcpy(words, label, strnlen(label, label_bytes_max));
  make_utf8(words, strlen(words));
  record_long(&(struct Call){.kind = kind, .label = words});
}

void cmttrace_mark(const char* label) {
  if (real_ready() && label) record_label(kind_mark, label);
}

void cmttrace_pause(void) {
  if (real_ready()) record_pause(true);
}

void cmttrace_resume(void) {
  if (real_ready()) record_pause(false);
}
