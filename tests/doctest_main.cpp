// The main() of every unit test program, compiled once: doctest takes 7 s for it.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
