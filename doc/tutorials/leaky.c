/* The program of doc/tutorials/black_box.md: a service that keeps a session of 64 KiB for each request, and never ends.
   leaky [BLOCK_BYTES [PAUSE_US]] */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char* volatile last_session;

__attribute__((noinline)) static void begin_session(size_t bytes) {
  char* session = malloc(bytes);
  if (session) memset(session, 1, bytes);
  last_session = session;
}

__attribute__((noinline)) static void answer(void) {
  char* volatile text = malloc(1000);
  if (text) memset(text, 1, 1000);
  free(text);
}

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 65536;
  const useconds_t pause_us = argc > 2 ? (useconds_t)strtoul(argv[2], NULL, 10) : 1000;
  for (;;) {
    begin_session(bytes);
    for (int i = 0; i < 10; i++) answer();
    if (pause_us) usleep(pause_us);
  }
}
