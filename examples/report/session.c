/* A session that is closed while another thread still looks at it. */
#include <pthread.h>
#include <stdlib.h>

typedef struct session {
  long user;
} session;

static session *volatile current;
static volatile long served;

static void *serve(void *unused) {
  for (int i = 0; i < 20; i++) served++;
  if (current)
    served += current->user;
  return unused;
}

static void *close_session(void *unused) {
  for (int i = 0; i < 40; i++) served++;
  current = 0;
  return unused;
}

int main(void) {
  pthread_t server, closer;
  current = malloc(sizeof *current);
  current->user = 7;
  pthread_create(&server, 0, serve, 0);
  pthread_create(&closer, 0, close_session, 0);
  pthread_join(server, 0);
  pthread_join(closer, 0);
  return 0;
}
