/* A library that has no calls itself, and depends on one that has them under a prefix. For tests of --prefix. */
int prefixed_below(void);

__attribute__((visibility("default"))) int prefixed_below(void) { return 0; }
