// marked PARSE [LOAD]: PARSE blocks in the phase "parse a::b". LOAD blocks in the phase "load", or "turns": 10 and 900
// in turn. "plain": no marks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmttrace.h"

static void parse_line(int blocks) {
  for (int i = 0; i < blocks; ++i) free(malloc(100));
}

static int by_turns(void) {
  if (unlink("turn") == 0) return 10;
  fclose(fopen("turn", "w"));
  return 900;
}

int main(int count, char** words) {
  const char* const load = count > 2 ? words[2] : "5";
  if (strcmp(load, "fail") == 0) return 7;
  if (strcmp(load, "plain") == 0) return parse_line(atoi(words[1])), 0;
  cmt_mark("parse a::b");
  parse_line(atoi(words[1]));
  cmt_mark("[between]");
  if (strcmp(load, "none") == 0) return 0;
  cmt_mark("load");
  parse_line(strcmp(load, "turns") == 0 ? by_turns() : atoi(load));
  cmt_mark("[between]");
  parse_line((int)getpid() % 1000);
  return 0;
}
