// A library that needs all the bytes which glibc keeps for the thread variables of libraries that are loaded later.
__attribute__((visibility("default"))) __thread char static_tls_bytes[1664];
__attribute__((visibility("default"))) char* static_tls_first(void) { return static_tls_bytes; }
