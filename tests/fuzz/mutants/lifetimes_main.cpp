// main() of lifetimes as a function of the program that runs mutants.

#define main lifetimes_main
#include "lifetimes/main.cpp"
