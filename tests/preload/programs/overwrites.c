// A program that writes over the memory that it shares with its collector, by mistake or on purpose.
//
// overwrites names FILE: waits for a line. Then writes FILE to each field of the control block that names a file.
//
// overwrites words SEED: writes random words to random places, and allocates.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/protocol.h"

static uint64_t state = 1;

static uint64_t next_random(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 20;
}

// Returns the control block, or null: nothing is recorded.
static struct Control* find_control(size_t* bytes) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  struct Control* found = NULL;
  char line[5000];
  while (!found && fgets(line, sizeof line, maps)) {
    unsigned long begin, end;
    char access[8];
    const int fields = sscanf(line, "%lx-%lx %7s", &begin, &end, access);
    if (fields != 3 || !strstr(line, "/memfd:") || strcmp(access, "rw-s")) continue;
    *bytes = end - begin;
    if (*bytes >= sizeof *found && !memcmp((void*)begin, ring_magic, sizeof found->magic)) found = (void*)begin;
  }
  fclose(maps);
  return found;
}

static void overwrite_names(struct Control* control, const char* file) {
  char* const names[] = {control->paths[0], control->rings_path, control->control_path, control->status_path,
                         control->pprof_path};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) strncpy(names[i], file, output_path_bytes);
  control->made_control = 1;
  control->outputs = 4;
  control->process = control->process_outside = 1;
  free(malloc(1000));
}

static void overwrite_words(struct Control* control, size_t bytes) {
  void* kept[100] = {0};
  // Half of them in the control block and the first rings of the table.
  for (int i = 0; i < 3000; i++) {
    void** const block = &kept[next_random() % 100];
    free(*block);
    *block = malloc(next_random() % 500);
    const size_t within = i % 2 ? bytes : sizeof(struct Control) + 1024;
    uint64_t* const word = (uint64_t*)control + next_random() % (within / 8);
    if (i % 3 == 0) *word = next_random() % 3 ? *word + next_random() % 100000 : next_random() << 20;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int is_names = !strcmp(argv[1], "names");
  if (is_names) getchar();
  size_t bytes = 0;
  struct Control* const control = find_control(&bytes);
  if (!control) return 3;
  if (is_names) {
    overwrite_names(control, argv[2]);
  } else {
    state = (uint64_t)atol(argv[2]) * 2 + 1;
    overwrite_words(control, bytes);
  }
  return 0;
}
