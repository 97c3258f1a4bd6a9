// marked HOW: calls the functions of cmttrace.h, or waits for commands.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/cmttrace.h"

static void block(size_t size) { free(malloc(size)); }

// Labels with bytes that are no UTF-8, and longer than a trace keeps.
static int labels(void) {
  char long_one[3001] = {0};
  for (int i = 0; i < 3000; i += 3) memcpy(long_one + i, "\xe2\x82\xac", 3);
  cmt_mark(long_one);
  cmt_mark("\xff a \xe2\x82");
  cmt_mark("a\nb\t\"\\\x01");
  cmt_mark("");
  cmt_mark(NULL);
  return 0;
}

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

// Each line that it reads is the size of a block, which it allocates; then it prints a line.
static int reads(void) {
  char line[32];
  while (fgets(line, sizeof line, stdin)) {
    block(strtoul(line, NULL, 10));
    puts("made");
    fflush(stdout);
  }
  return 0;
}

// Each line is the number of blocks to allocate.
static int blocks(void) {
  char line[32];
  while (fgets(line, sizeof line, stdin)) {
    for (long i = strtol(line, NULL, 10); i > 0; i--) block(60006);
    puts("made");
    fflush(stdout);
  }
  return 0;
}

// The same by a child for each line.
static int forks(void) {
  char line[32];
  while (fgets(line, sizeof line, stdin)) {
    const long count = strtol(line, NULL, 10);
    const pid_t child = fork();
    for (long i = child == 0 ? count : 0; i > 0; i--) block(60006);
    if (child == 0) _exit(0);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
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
  if (strcmp(how, "labels") == 0) return labels();
  if (strcmp(how, "reads") == 0) return reads();
  if (strcmp(how, "blocks") == 0) return blocks();
  if (strcmp(how, "forks") == 0) return forks();
  if (strcmp(how, "many") == 0) return many();
  return 2;
}
