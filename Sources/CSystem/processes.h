#pragma once

// Starting a program that inherits only one socket, and how this one was started.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/auxv.h>

/// The path by which this program was started, as the system was given it; null if it does not tell.
static inline const char *csystem_name_at_start(void) { return (const char *)getauxval(AT_EXECFN); }

// glibc 2.34; hidden without _GNU_SOURCE.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int) __attribute__((weak));
#endif

/// Starts `path` with `socket` as its standard input and /dev/null as its output and error; nothing else is open.
///
/// Signals have their default handling, and those of the terminal do not reach the program. Returns an errno, or 0.
static inline int csystem_spawn(pid_t *process, const char *path, char *const *arguments, char *const *environment,
                                int socket) {
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
  if (!result) result = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (!result) result = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
#ifdef __linux__
  if (!result && posix_spawn_file_actions_addclosefrom_np)
    result = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  if (!result) result = posix_spawn(process, path, &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

#ifdef __linux__
#include <sys/ptrace.h>

// For tests. Swift hides fork, and ptrace is variadic.

static inline pid_t csystem_fork(void) { return fork(); }

static inline int csystem_attach(pid_t process) { return (int)ptrace(PTRACE_SEIZE, process, NULL, NULL); }
#endif
