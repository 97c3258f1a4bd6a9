// Programs of the cases that bench/tuned_programs runs. Each has a pattern that people ask about in public threads.
//
//     tuned server SOCKET   24 connections, a thread each. Sessions live on, parts of a request do not.
//     tuned ready SOCKET    succeeds once the server can be asked.
//     tuned load SOCKET     sends the requests.
//     tuned images          12 threads with image buffers of 0.2 to 8 MB.
//     tuned messages        buffers of 1 MiB and a little more, 200 a second.
//
// All sizes come from a fixed sequence, so that each run makes the same calls.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
  connections = 24,
  requests = 300,
  parts = 150,
  sessions = 4000,
  image_threads = 12,
  images = 20,
  messages = 400
};

static uint32_t next_of(uint32_t* state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 8;
}

static void* filled(size_t bytes) {
  char* const block = malloc(bytes);
  if (block == NULL) abort();
  memset(block, 1, bytes);
  return block;
}

static struct sockaddr_un address_of(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  return address;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* kept[sessions];
static unsigned kept_count;

static void keep(void* session) {
  pthread_mutex_lock(&lock);
  void* const old = kept[kept_count % sessions];
  kept[kept_count++ % sessions] = session;
  pthread_mutex_unlock(&lock);
  free(old);
}

static void* serve(void* argument) {
  const int fd = (int)(intptr_t)argument;
  uint32_t state;
  while (read(fd, &state, sizeof state) == sizeof state) {
    void* block[parts];
    for (int i = 0; i < parts; ++i) {
      block[i] = filled(32 + next_of(&state) % (i % 8 == 0 ? 32768 : 512));
      if (i % 16 == 0) keep(filled(64 + next_of(&state) % 256));
    }
    void* const answer = filled(16384 + next_of(&state) % 98304);
    for (int i = 0; i < parts; ++i) free(block[i]);
    free(answer);
    if (write(fd, &state, sizeof state) != sizeof state) break;
  }
  close(fd);
  return NULL;
}

static int server(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr_un address = address_of(path);
  unlink(path);
  if (bind(fd, (const struct sockaddr*)&address, sizeof address) != 0 || listen(fd, connections) != 0) return 1;
  for (;;) {
    const int connection = accept(fd, NULL, NULL);
    pthread_t thread;
    if (connection < 0 || pthread_create(&thread, NULL, serve, (void*)(intptr_t)connection) != 0) return 1;
    pthread_detach(thread);
  }
}

static const char* server_path;

static int connected(void) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr_un address = address_of(server_path);
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) exit(1);
  return fd;
}

static void* ask(void* argument) {
  const int fd = connected();
  uint32_t state = 1 + (uint32_t)(intptr_t)argument;
  for (int i = 0; i < requests; ++i) {
    if (write(fd, &state, sizeof state) != sizeof state || read(fd, &state, sizeof state) != sizeof state) exit(1);
  }
  close(fd);
  return NULL;
}

static void* use_images(void* argument) {
  uint32_t state = 1 + (uint32_t)(intptr_t)argument;
  void* held[3] = {0};
  for (int i = 0; i < images; ++i) {
    free(held[i % 3]);
    held[i % 3] = filled(200000 + next_of(&state) % 7800000);
    free(filled(64 + next_of(&state) % 4096));
  }
  for (int i = 0; i < 3; ++i) free(held[i]);
  return NULL;
}

static void run_threads(int count, void* (*work)(void*)) {
  pthread_t threads[32];
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i) != 0) exit(1);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

static void send_messages(void) {
  const struct timespec pause = {.tv_sec = 0, .tv_nsec = 5000000};
  uint32_t state = 1;
  void* queue[4] = {0};
  for (int i = 0; i < messages; ++i) {
    free(queue[i % 4]);
    queue[i % 4] = filled((1 << 20) + next_of(&state) % 4096);
    void* const head = filled(100 + next_of(&state) % 1000);
    nanosleep(&pause, NULL);
    free(head);
  }
  for (int i = 0; i < 4; ++i) free(queue[i]);
}

int main(int argc, char** argv) {
  const char* const part = argc < 2 ? "" : argv[1];
  if (argc == 3 && strcmp(part, "server") == 0) return server(argv[2]);
  server_path = argc == 3 ? argv[2] : "";
  if (argc == 3 && strcmp(part, "ready") == 0) {
    close(connected());
  } else if (argc == 3 && strcmp(part, "load") == 0) {
    run_threads(connections, ask);
  } else if (argc == 2 && strcmp(part, "images") == 0) {
    run_threads(image_threads, use_images);
  } else if (argc == 2 && strcmp(part, "messages") == 0) {
    send_messages();
  } else {
    fprintf(stderr, "usage: tuned server|ready|load SOCKET, tuned images|messages\n");
    return 2;
  }
  puts("done");
  return 0;
}
