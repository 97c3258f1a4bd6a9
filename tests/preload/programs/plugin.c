// A library whose constructor allocates and whose destructor frees. If it is preloaded, the process's first block is
// allocated by bindtextdomain, which holds gettext's lock.
#include <libintl.h>
#include <stdlib.h>

static void* block;

__attribute__((constructor)) static void begin(void) {
  bindtextdomain("one", "/");
  bindtextdomain("two", "/");
  block = malloc(32000);
}
__attribute__((destructor)) static void end(void) { free(block); }
