/* More attacks, compiled in front of hostile.c: those that look harmless, or that are aimed at what is around the driver. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int find_memory(const char *name, char **begin, size_t *size);

/* Small numbers that grow a little, one every few microseconds: each may be true. */
static void *lie(void *name) {
  char *memory;
  size_t size;
  if (!find_memory(name, &memory, &size)) return NULL;
  if (size > 1 << 20) size = 1 << 20;
  for (uint64_t round = 1;; round++) {
    for (size_t at = 0; at + 8 <= size; at += 8) {
      uint64_t *word = (uint64_t *)(memory + at);
      if (*word > 0 && *word < 100000) {
        *word += round % 3;
        usleep(200);
      }
    }
  }
  return NULL;
}
static void page_lies(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, lie, "waylay-page");
}
static void region_lies(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, lie, "waylay-control");
}
/* Every word of the page gets the value of its neighbour. */
static void page_shifted(void) {
  char *page;
  size_t size;
  if (find_memory("waylay-page", &page, &size)) memmove(page + 8, page, size - 8);
}
static void over_all(void) {
  int other = open("/dev/zero", O_RDWR);
  for (int fd = 3; fd < 128; fd++)
    if (fd != other) dup2(other, fd);
}
static void stop_group(void) { kill(0, SIGSTOP); }
/* The host becomes a member of the driver's own process group, and leaves a child there. */
static void join_driver(void) {
  setpgid(0, getpgid(getppid()));
  if (fork() == 0) {
    prctl(PR_SET_NAME, "left-behind");
    for (;;) pause();
  }
}
static void not_dumpable(void) {
  prctl(PR_SET_DUMPABLE, 0);
  *(volatile int *)40 = 1;
}
static void no_calls_thread(void) { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }
/* No thread may wait, write or end any more. */
static void no_calls(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}
static void apart(void) {
  unshare(CLONE_FILES | CLONE_FS | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUTS);
  if (fork() == 0) {
    prctl(PR_SET_NAME, "left-behind");
    for (;;) pause();
  }
}
static void nowhere(void) {
  char path[400];
  snprintf(path, sizeof path, "%s/nowhere", getenv("TMPDIR"));
  if (mkdir(path, 0700) == 0 && chroot(path) == 0 && chdir("/") == 0) (void)!rmdir("/");
  setpriority(PRIO_PROCESS, 0, 19);
  *(volatile int *)48 = 1;
}
static void many_descriptors(void) {
  struct rlimit most;
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  setrlimit(RLIMIT_NOFILE, &most);
  for (int i = 0; i < 20000 && open("/dev/null", O_RDONLY) >= 0; i++) {
  }
  *(volatile int *)56 = 1;
}
static void many_maps(void) {
  for (int i = 0; i < 20000; i++) {
    int protection = i % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
  }
  *(volatile int *)64 = 1;
}
static void lock_memory(void) {
  mlockall(MCL_CURRENT | MCL_FUTURE);
  *(volatile int *)72 = 1;
}
static void large_environment(void) {
  static char value[1 << 20];
  memset(value, 'v', sizeof value - 1);
  for (int i = 0; i < 32; i++) {
    char name[32];
    snprintf(name, sizeof name, "SLY_%d\x1b[2J", i);
    setenv(name, value, 1);
  }
  *(volatile int *)80 = 1;
}
/* Nothing of ours notices the crash any more. */
static void own_handlers(void) {
  stack_t none = {.ss_flags = SS_DISABLE};
  sigaltstack(&none, NULL);
  for (int signal = 1; signal < 65; signal++) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
  }
  *(volatile int *)88 = 1;
}
/* Some hundred processes, each in a session of its own, each started by the one before. */
static void fork_bomb(void) {
  static int *count;
  count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (count == MAP_FAILED || fork() != 0) return;
  prctl(PR_SET_NAME, "left-behind");
  while (__sync_fetch_and_add(count, 1) < 300) {
    setsid();
    if (fork() == 0) continue;
    usleep(1000);
  }
  for (;;) pause();
}
/* Makes a link of every place where evidence is written. */
static void links(void) {
  const char *script =
      "mkdir -p outside; for campaign in waylay-out/*/; do rm -rf \"$campaign/failures\"; ln -s \"$PWD/outside\" \"$campaign/failures\"; "
      "rm -f \"$campaign/campaign.json\"; ln -s \"$PWD/outside/record\" \"$campaign/campaign.json\"; "
      "ln -sf \"$PWD/outside/part\" \"$campaign/campaign.part\"; done";
  (void)!system(script);
}
/* Everything that was written so far, and where temporary files are. */
static void remove_results(void) { (void)!system("rm -rf waylay-out/2* \"$TMPDIR\""); }
static void odd_files(void) {
  const char *script =
      "for folder in waylay-out/*/failures/*/ \"$TMPDIR\"; do printf x > \"$folder/$(printf 'a\\nb\\033[2J<img src=x>')\"; "
      "mkfifo \"$folder/pipe\"; ln -s /etc/passwd \"$folder/notes.txt\"; done";
  (void)!system(script);
}
static void bell(void) {
  char *page;
  size_t size;
  if (!find_memory("waylay-page", &page, &size)) return;
  for (int i = 0; i < 200000; i++)
    for (int word = 0; word < 4; word++) syscall(SYS_futex, page + 4096 / 4 * word, 1, 1 << 30, NULL, NULL, 0);
}
static void seal_page(void) {
  for (int fd = 3; fd < 64; fd++) fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
}

#define MORE_ENTRIES                       \
  {"page-lies", page_lies},                \
      {"region-lies", region_lies},        \
      {"page-shifted", page_shifted},      \
      {"over-all", over_all},              \
      {"stop-group", stop_group},          \
      {"join-driver", join_driver},        \
      {"not-dumpable", not_dumpable},      \
      {"no-calls-thread", no_calls_thread}, \
      {"no-calls", no_calls},              \
      {"apart", apart},                    \
      {"nowhere", nowhere},                \
      {"many-descriptors", many_descriptors}, \
      {"many-maps", many_maps},            \
      {"lock-memory", lock_memory},        \
      {"large-environment", large_environment}, \
      {"own-handlers", own_handlers},      \
      {"fork-bomb", fork_bomb},            \
      {"links", links},                    \
      {"remove-results", remove_results},  \
      {"odd-files", odd_files},            \
      {"bell", bell},                      \
      {"seal-page", seal_page},
