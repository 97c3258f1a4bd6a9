// A library whose constructor allocates and whose destructor gives back. Where it is preloaded, the process's first
// block is one that bindtextdomain makes, with gettext's lock held.
#include <libintl.h>
#include <stdlib.h>

static void* block;

__attribute__((constructor)) static void begin(void) {
  bindtextdomain("one", "/");
  bindtextdomain("two", "/");
  block = malloc(32000);
}
__attribute__((destructor)) static void end(void) { free(block); }
