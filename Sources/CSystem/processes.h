#pragma once

// Starting a program that inherits only one socket, waiting for a child.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#include <libproc.h>
#include <mach/mach_time.h>
#endif

#ifdef __linux__
#include <sys/syscall.h>

// glibc 2.34; hidden without _GNU_SOURCE.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int) __attribute__((weak));

/// Adds that all descriptors from 3 are closed. Without close_range(2), which is new in Linux 5.9, and without /proc,
/// those below 1024 are.
static inline int csystem_close_others(posix_spawn_file_actions_t *actions) {
  enum { close_range = 436 };
  int is_supported = syscall(close_range, ~0u, ~0u, 0) == 0 || access("/proc/self/fd", X_OK) == 0;
  if (is_supported && posix_spawn_file_actions_addclosefrom_np)
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
  int result = 0;
  for (int descriptor = 3; !result && descriptor < 1024; descriptor++)
    result = posix_spawn_file_actions_addclose(actions, descriptor);
  return result;
}
#endif

/// Returns a descriptor that reads as an empty file and cannot be written to, or -1 with errno. There may be no
/// /dev/null.
static inline int csystem_open_empty(void) {
  int ends[2];
  if (pipe(ends)) return -1;
  close(ends[1]);
  return ends[0];
}

/// pipe(2) whose reading end does not block, close-on-exec.
static inline int csystem_pipe(int ends[2]) {
  if (pipe(ends)) return -1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  return 0;
}

/// Starts `path` with `socket` as its standard input, with an output that cannot be written to, with `messages` as its
/// error, and with no other descriptor.
///
/// Signals have their default handling, and those of the terminal do not reach the program. Returns an errno, or 0.
static inline int csystem_spawn(pid_t *process, const char *path, char *const *arguments, char *const *environment,
                                int socket, int messages) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  int result = posix_spawn_file_actions_init(&actions);
  if (result) return result;
  if ((result = posix_spawnattr_init(&attributes))) {
    posix_spawn_file_actions_destroy(&actions);
    return result;
  }
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
  flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#endif
  posix_spawnattr_setflags(&attributes, flags);
  result = posix_spawn_file_actions_adddup2(&actions, socket, 0);
  int empty = csystem_open_empty();
  if (!result && empty < 0) result = errno;
  if (!result) result = posix_spawn_file_actions_adddup2(&actions, empty, 1);
  if (!result) result = posix_spawn_file_actions_adddup2(&actions, messages, 2);
#ifdef __linux__
  if (!result) result = csystem_close_others(&actions);
#endif
  if (!result) result = posix_spawn(process, path, &actions, &attributes, arguments, environment);
  if (empty >= 0) close(empty);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

/// fork(2), which Swift hides.
static inline pid_t csystem_fork(void) { return fork(); }

static inline void csystem_note_child(int signal) { (void)signal; }

/// Has the end of a child interrupt `csystem_wait`. Returns 0, or -1 with errno.
static inline int csystem_watch_children(void) {
  struct sigaction action = {.sa_handler = csystem_note_child};
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return sigaction(SIGCHLD, &action, NULL) || sigprocmask(SIG_BLOCK, &child, NULL) ? -1 : 0;
}

/// Waits until the child has ended, and stores its status, or until there is something to read. The caller has called
/// `csystem_watch_children`. Returns 0 if the child has ended, 1 if there is something to read.
static inline int csystem_wait(pid_t child, int *status, int descriptor) {
  sigset_t none;
  sigemptyset(&none);
  struct pollfd watched = {.fd = descriptor, .events = POLLIN};
  while (waitpid(child, status, WNOHANG) == 0) {
    if (ppoll(&watched, 1, NULL, &none) > 0) return 1;
  }
  return 0;
}

/// The processor time in nanoseconds of all threads of a process, those that have ended included. -1 if the system does
/// not tell it.
static inline int64_t csystem_processor_time(pid_t process) {
#ifdef __APPLE__
  struct rusage_info_v0 usage;
  mach_timebase_info_data_t unit;
  if (proc_pid_rusage(process, RUSAGE_INFO_V0, (rusage_info_t *)&usage) || mach_timebase_info(&unit)) return -1;
  return (int64_t)((usage.ri_user_time + usage.ri_system_time) * unit.numer / unit.denom);
#else
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &time)) return -1;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
#endif
}

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

// For tests. ptrace and prctl are variadic.

static inline void csystem_crash(void) { __builtin_trap(); }

static inline int csystem_outlive_parent(void) { return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0); }

static inline int csystem_read_memory(pid_t process) {
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)&csystem_read_memory, 1};
  return (int)syscall(SYS_process_vm_readv, process, &here, 1, &there, 1, 0);
}

static inline int csystem_attach(pid_t process) { return (int)ptrace(PTRACE_SEIZE, process, NULL, NULL); }
#endif
