/* What the worker says of itself: a line a call and a line an object, on standard output. */
#define _GNU_SOURCE
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <unistd.h>

#include "target.h"

static void say(const char* word, const char* path) {
  char line[8192];
  size_t length = 0;
  for (const char* part = word; *part; ++part) line[length++] = *part;
  line[length++] = ' ';
  for (const char* part = path; *part && length < sizeof line - 1; ++part) line[length++] = *part;
  line[length++] = '\n';
  for (size_t put = 0; put < length;) {
    const ssize_t now = write(STDOUT_FILENO, line + put, length - put);
    if (now < 0 && errno != EINTR) _exit(1);
    if (now > 0) put += (size_t)now;
  }
}

static int say_object(struct dl_phdr_info* object, size_t info_bytes, void* unused) {
  (void)info_bytes;
  (void)unused;
  say("object", object->dlpi_name);
  return 0;
}

int probe(void) {
  const struct calls found = target_calls();
  const void* addresses[call_count];
  call_addresses(&found, addresses);
  for (int i = 0; i < call_count; ++i) {
    Dl_info info;
    say(call_names[i], addresses[i] && dladdr(addresses[i], &info) ? info.dli_fname : "");
  }
  dl_iterate_phdr(say_object, NULL);
  return 0;
}
