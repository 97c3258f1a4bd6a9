// A library that a program loads with RTLD_DEEPBIND: the loader binds it to libc's malloc, past a tracer. Its
// constructor allocates, and so binds words before the program goes on.
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) void use_plugin(int calls);

static void* block;

__attribute__((constructor)) static void begin(void) { block = malloc(43000); }
__attribute__((destructor)) static void end(void) { free(block); }

void use_plugin(int calls) {
  for (int i = 0; i < calls; i++) {
    char* made = malloc(43001);
    memset(made, 0, 2);
    made = realloc(made, 43002);
    free(made);
    free(calloc(1, 43003));
  }
}
