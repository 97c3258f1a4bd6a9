// main() of trace2cmt as a function of the program that runs mutants.

#define main trace2cmt_main
#include "trace2cmt/main.cpp"
