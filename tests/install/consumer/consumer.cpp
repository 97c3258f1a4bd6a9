// Counts the events of a trace through the installed headers and library alone.

#include <cstdio>

#include "cmt/reader.h"

int main(int, char** argv) {
  cmt::Reader reader(argv[1]);
  unsigned long count = 0;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) count += events.size();
  std::printf("%lu events\n", count);
}
