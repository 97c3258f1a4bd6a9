/* asker [fork|late]: asks for known memory in steps, and waits for a file before each further step.

   Step 1: 1,000 blocks of 10,000 bytes, all written to. Step 2: 900 of them are freed, each tenth stays. With "fork", a
   child that asks for 5,000 blocks of 1,000 bytes in the meantime. With "late" there is a step 0 before, in which it
   asks for nothing. A step's end is a file "at.1", "at.2"; "go.1", "go.2" end the wait that follows. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void arrive(int step) {
  char name[16];
  snprintf(name, sizeof name, "at.%d", step);
  close(open(name, O_WRONLY | O_CREAT, 0666));
}

static void wait_for(int step) {
  const struct timespec while_waiting = {0, 1000000};
  char name[16];
  snprintf(name, sizeof name, "go.%d", step);
  while (access(name, F_OK) != 0) nanosleep(&while_waiting, NULL);
}

static void* block(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory) memset(memory, 1, bytes);
  return memory;
}

static void child(void) {
  for (int i = 0; i < 5000; i++) block(1000);
  arrive(3);
  wait_for(2);
  _exit(0);
}

int main(int count, char** words) {
  static void* blocks[1000];
  if (count > 1 && strcmp(words[1], "fork") == 0 && fork() == 0) child();
  if (count > 1 && strcmp(words[1], "late") == 0) {
    arrive(0);
    wait_for(0);
  }
  for (int i = 0; i < 1000; i++) blocks[i] = block(10000);
  arrive(1);
  wait_for(1);
  for (int i = 0; i < 1000; i++) {
    if (i % 10 != 0) free(blocks[i]);
  }
  arrive(2);
  wait_for(2);
  while (wait(NULL) > 0) continue;
  return 3;
}
