// A library that looks like another interpreter: its loop allocates.
#include <stdlib.h>

__attribute__((visibility("default"))) void _PyEval_EvalFrameDefault(void);
void _PyEval_EvalFrameDefault(void) {
  void* volatile block = malloc(5000);
  free(block);
}
