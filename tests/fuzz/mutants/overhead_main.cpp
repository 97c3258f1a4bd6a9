// main() of overhead as a function of the program that runs mutants.

#define main overhead_main
#include "overhead/main.cpp"
