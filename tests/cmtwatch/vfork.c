/* Holds 64 MB while a child runs in its memory, between vfork and the end: the file "borrowed" says that it does,
   "seen" ends it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  memset(malloc(64000000), 1, 64000000);
  if (vfork() != 0) return wait(NULL) < 0;
  close(open("borrowed", O_WRONLY | O_CREAT, 0666));
  while (access("seen", F_OK) != 0) usleep(1000);
  _exit(0);
}
