// marked HOW: what cmttrace.h has, and a program that waits to be controlled from outside.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/cmttrace.h"

static void block(size_t size) { free(malloc(size)); }

static int inside(void) {
  block(60001);
  cmt_mark("phase \"two\"");
  block(60002);
  cmt_pause();
  block(60003);
  cmt_resume();
  block(60004);
  return 0;
}

// Each line that it reads is the size of a block that it makes; it says when it has.
static int reads(void) {
  char line[32];
  while (fgets(line, sizeof line, stdin)) {
    block(strtoul(line, NULL, 10));
    puts("made");
    fflush(stdout);
  }
  return 0;
}

// Each line says how many blocks to make.
static int blocks(void) {
  char line[32];
  while (fgets(line, sizeof line, stdin)) {
    for (long i = strtol(line, NULL, 10); i > 0; i--) block(60006);
    puts("made");
    fflush(stdout);
  }
  return 0;
}

static int many(void) {
  for (int i = 0; i < 300000; i++) block(60005);
  return 0;
}

int main(int argc, char** argv) {
  const char* how = argc == 2 ? argv[1] : "";
  if (strcmp(how, "inside") == 0) return inside();
  if (strcmp(how, "reads") == 0) return reads();
  if (strcmp(how, "blocks") == 0) return blocks();
  if (strcmp(how, "many") == 0) return many();
  return 2;
}
