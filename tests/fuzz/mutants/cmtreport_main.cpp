// main() of cmtreport as a function of the program that runs mutants.

#define main cmtreport_main
#include "cmtreport/main.cpp"
