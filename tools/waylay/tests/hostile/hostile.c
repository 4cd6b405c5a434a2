/* Tests that attack what runs them, each in one way. Every one does its deed once per process, after some good
 * iterations, so that its neighbour in the same process has failed and been looked at before. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "waylay.h"

typedef struct hostile {
  waylay_instance instance;
  const waylay_services *services;
  waylay_context *context;
  void (*deed)(void);
  const char *name;
} hostile;

/* Memory of Waylay, by the name of its file. */
static int find_memory(const char *name, char **begin, size_t *size) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    if (strstr(line, name) && sscanf(line, "%lx-%lx", &from, &to) == 2) {
      *begin = (char *)from;
      *size = to - from;
      found = 1;
      break;
    }
  }
  if (maps) fclose(maps);
  return found;
}

static int find_descriptor(const char *begin_of_name) {
  for (int fd = 3; fd < 256; fd++) {
    char path[64], name[256] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof name - 1) > 0 && strncmp(name, begin_of_name, strlen(begin_of_name)) == 0) return fd;
  }
  return -1;
}

static uint64_t state = 88172645463325252ull;
static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void fill_page(int value) {
  char *page;
  size_t size;
  if (find_memory("waylay-page", &page, &size)) memset(page, value, size);
}
static void page_zero(void) { fill_page(0); }
static void page_ones(void) { fill_page(0xff); }
static void page_random(void) {
  char *page;
  size_t size;
  if (!find_memory("waylay-page", &page, &size)) return;
  for (size_t at = 0; at + 8 <= size; at += 8) *(uint64_t *)(page + at) = next_random();
}
static void *scribble(void *unused) {
  char *page;
  size_t size;
  (void)unused;
  if (find_memory("waylay-page", &page, &size))
    for (;;) *(uint32_t *)(page + next_random() % (size / 4) * 4) = (uint32_t)next_random();
  return NULL;
}
static void page_always(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, scribble, NULL);
}
static void page_truncated(void) {
  int fd = find_descriptor("/memfd:waylay-page");
  if (fd >= 0 && ftruncate(fd, 0) == 0) abort();
}
static void page_punched(void) {
  int fd = find_descriptor("/memfd:waylay-page");
  if (fd >= 0) (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
}
static void page_unmapped(void) {
  char *page;
  size_t size;
  if (find_memory("waylay-page", &page, &size)) munmap(page, size);
}
static void page_protected(void) {
  char *page;
  size_t size;
  if (find_memory("waylay-page", &page, &size)) mprotect(page, size, PROT_NONE);
}
static void region_zero(void) {
  char *region;
  size_t size;
  if (find_memory("waylay-control", &region, &size)) memset(region, 0, 1 << 20);
}
static void region_ones(void) {
  char *region;
  size_t size;
  if (find_memory("waylay-control", &region, &size)) memset(region, 0xff, 1 << 20);
}
static void heap_region_truncated(void) {
  int fd = find_descriptor("/memfd:waylay-heap");
  if (fd >= 0 && ftruncate(fd, 0) == 0) abort();
}
static void close_all(void) {
  for (int fd = 3; fd < 1024; fd++) close(fd);
}
static void close_streams(void) {
  for (int fd = 0; fd < 3; fd++) close(fd);
}
static void forge(const char *text) {
  int fd = find_descriptor("pipe:");
  if (fd >= 0) (void)!write(fd, text, strlen(text));
}
static void event_out_of_range(void) { forge("{\"event\":\"test-refused\",\"test\":4294967295,\"reason\":\"x\"}\n"); }
static void event_of_no_plugin(void) { forge("{\"event\":\"plugin-refused\",\"plugin\":77,\"reason\":\"x\"}\n"); }
static void event_garbage(void) { forge("\xff\xfe not an event\n"); }
static void event_endless(void) {
  static char block[1 << 16];
  int fd = find_descriptor("pipe:");
  memset(block, 'x', sizeof block);
  for (int i = 0; fd >= 0 && i < 400; i++) (void)!write(fd, block, sizeof block);
}
static void event_flood(void) {
  for (int i = 0; i < 5000; i++) forge("{\"event\":\"test-refused\",\"test\":0,\"reason\":\"again and again\"}\n");
}
static void event_plugin(void) { forge("{\"event\":\"plugin-refused\",\"plugin\":0,\"reason\":\"x\"}\n"); }
static void event_exhausted(void) { forge("{\"event\":\"exhausted\",\"test\":0}\n"); }
#ifndef PHASE_AT
#define PHASE_AT 0
#endif
/* The phase of a host that left in order, and of one whose tests are over. */
static void say_phase(uint32_t phase) {
  char *page;
  size_t size;
  if (PHASE_AT != 0 && find_memory("waylay-page", &page, &size)) memcpy(page + PHASE_AT, &phase, sizeof phase);
}
static void phase_left(void) {
  say_phase(6);
  _exit(0);
}
static void phase_ended(void) {
  say_phase(5);
  sleep(1);
}
static void event_half(void) {
  forge("{\"event\":\"test-refu");
  _exit(0);
}
static void *rest(void *unused) {
  (void)unused;
  for (;;) pause();
  return NULL;
}
static void many_threads(void) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 16);
  for (int i = 0; i < 300; i++) pthread_create(&thread, &small, rest, NULL);
  *(volatile int *)24 = 1;
}
static void odd_names(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, rest, NULL) == 0) pthread_setname_np(thread, ") T \x1b[2J\n\xff");
  prctl(PR_SET_NAME, ") Z 1\n\x1b]0;x");
  *(volatile int *)32 = 1;
}
static void stderr_flood(void) {
  static char block[1 << 16];
  memset(block, 'e', sizeof block);
  for (int i = 0; i < 160; i++) (void)!write(2, block, sizeof block);
}
static void daemon_of(int session) {
  pid_t child = fork();
  if (child == 0) {
    if (session) setsid();
    if (fork() == 0) {
      prctl(PR_SET_NAME, "left-behind");
      sleep(120);
      _exit(0);
    }
    _exit(0);
  }
  if (child > 0) waitpid(child, NULL, 0);
}
static void daemon_in_group(void) { daemon_of(0); }
static void daemon_in_session(void) { daemon_of(1); }
static void many_children(void) {
  for (int i = 0; i < 20; i++)
    if (fork() == 0) {
      prctl(PR_SET_NAME, "left-behind");
      for (;;) pause();
    }
}
static void stop_itself(void) { raise(SIGSTOP); }
static void kill_itself(void) { raise(SIGKILL); }
static void terminate_parent(void) { kill(getppid(), SIGTERM); }
static void interrupt_parent(void) { kill(getppid(), SIGINT); }
static void hang_up_parent(void) { kill(getppid(), SIGHUP); }
static void trace_itself(void) { ptrace(PTRACE_TRACEME, 0, NULL, NULL); }
static void change_folder(void) {
  if (chdir("/") == 0) umask(0777);
}
static void tighten_limits(void) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_NOFILE, &none);
  setrlimit(RLIMIT_FSIZE, &none);
  setrlimit(RLIMIT_NPROC, &none);
}
static void become_another(void) { execl("/bin/true", "true", (char *)NULL); }
static void *leave(void *unused) {
  (void)unused;
  _exit(0);
}
static void leave_in_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, leave, NULL) == 0) pthread_join(thread, NULL);
}
static void raise_terminate(void) { raise(SIGTERM); }
static void raise_every_signal(void) {
  for (int signal = 1; signal < 32; signal++)
    if (signal != SIGKILL && signal != SIGSTOP) raise(signal);
}
static void block_and_wait(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  for (;;) pause();
}
static void ignore_everything(void) {
  for (int signal = 1; signal < 65; signal++) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(signal, &ignore, NULL);
  }
  *(volatile int *)8 = 1;
}
static int descend(volatile int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return depth < 0 ? 0 : descend(depth + 1) + room[0];
}
static void overflow_stack(void) { descend(0); }
static void take_memory(void) {
  struct rlimit limit = {1ull << 32, 1ull << 32};
  setrlimit(RLIMIT_AS, &limit);
  for (int i = 0; i < 100000 && malloc(1 << 24); i++) {
  }
  *(volatile int *)16 = 1;
}
static void timers(void) {
  struct itimerval often = {{0, 1000}, {0, 1000}};
  signal(SIGALRM, SIG_IGN);
  setitimer(ITIMER_REAL, &often, NULL);
  alarm(1);
}

typedef struct entry {
  const char *name;
  void (*deed)(void);
} entry;

static const entry ENTRIES[] = {
    {"neighbour", NULL},
    {"page-zero", page_zero},
    {"page-ones", page_ones},
    {"page-random", page_random},
    {"page-always", page_always},
    {"page-truncated", page_truncated},
    {"page-punched", page_punched},
    {"page-unmapped", page_unmapped},
    {"page-protected", page_protected},
    {"region-zero", region_zero},
    {"region-ones", region_ones},
    {"heap-region-truncated", heap_region_truncated},
    {"close-all", close_all},
    {"close-streams", close_streams},
    {"event-out-of-range", event_out_of_range},
    {"event-of-no-plugin", event_of_no_plugin},
    {"event-garbage", event_garbage},
    {"event-endless", event_endless},
    {"event-flood", event_flood},
    {"event-half", event_half},
    {"event-plugin", event_plugin},
    {"event-exhausted", event_exhausted},
    {"phase-left", phase_left},
    {"phase-ended", phase_ended},
    {"many-threads", many_threads},
    {"odd-names", odd_names},
    {"stderr-flood", stderr_flood},
    {"daemon-in-group", daemon_in_group},
    {"daemon-in-session", daemon_in_session},
    {"many-children", many_children},
    {"stop-itself", stop_itself},
    {"kill-itself", kill_itself},
    {"terminate-parent", terminate_parent},
    {"interrupt-parent", interrupt_parent},
    {"hang-up-parent", hang_up_parent},
    {"trace-itself", trace_itself},
    {"change-folder", change_folder},
    {"tighten-limits", tighten_limits},
    {"become-another", become_another},
    {"leave-in-thread", leave_in_thread},
    {"raise-terminate", raise_terminate},
    {"raise-every-signal", raise_every_signal},
    {"block-and-wait", block_and_wait},
    {"ignore-everything", ignore_everything},
    {"overflow-stack", overflow_stack},
    {"take-memory", take_memory},
    {"timers", timers},
#ifdef MORE_ENTRIES
    MORE_ENTRIES
#endif
};
enum { ENTRY_COUNT = sizeof ENTRIES / sizeof ENTRIES[0] };

/* Tells whoever counts deeds of this one. */
static void note(const char *name) {
  const char *path = getenv("STORM_DEEDS");
  int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (fd < 0) return;
  dprintf(fd, "%s\n", name);
  close(fd);
}

/* Good iterations before the deed. */
enum { BEFORE = 15 };

static int32_t iterate(waylay_instance *instance, waylay_context *worker) {
  hostile *self = (hostile *)instance;
  static _Atomic int deeds, neighbours;
  int count = atomic_fetch_add(self->deed ? &deeds : &neighbours, 1);
  if (self->deed == NULL) {
    usleep(1000);
    if (count != 0) return WAYLAY_OK;
    waylay_fail(self->services, worker, "the neighbour has something to say");
    return WAYLAY_FAILED;
  }
  if (count < BEFORE) usleep(2000);
  if (count == BEFORE) {
    note(self->name);
    self->deed();
  }
  if (count > BEFORE) usleep(1000);
  return WAYLAY_OK;
}

static waylay_test_info infos[ENTRY_COUNT];
static const waylay_test_info *info_pointers[ENTRY_COUNT];
static waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "hostile", .tests = info_pointers, .test_count = ENTRY_COUNT};

static void describe(void) {
  for (int i = 0; i < ENTRY_COUNT; i++) {
    infos[i].size = sizeof infos[i];
    infos[i].name = ENTRIES[i].name;
    infos[i].about = "attacks what runs it";
    info_pointers[i] = &infos[i];
  }
}

const waylay_plugin_info *WaylayPlugin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, describe);
  return &plugin;
}

waylay_instance *CreateInstance(const waylay_create_args *args) {
  for (int i = 0; i < ENTRY_COUNT; i++) {
    if (strcmp(ENTRIES[i].name, args->test) != 0) continue;
    hostile *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->instance.size = sizeof made->instance;
    made->instance.TestMain = iterate;
    made->services = args->services;
    made->context = args->context;
    made->deed = ENTRIES[i].deed;
    made->name = ENTRIES[i].name;
    return &made->instance;
  }
  return NULL;
}

void DestroyInstance(waylay_instance *instance) { free(instance); }
