#pragma once

// Opening files of another program. Swift has no openat2(2).

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/openat2.h>
#include <sys/syscall.h>
// <fcntl.h> has it for GNU sources only.
#ifndef O_PATH
#define O_PATH 010000000
#endif
#endif

/// Opens a file or directory below a directory, without opening what it contains: no link is followed, and no path leads
/// out. Returns its descriptor, or -1.
static inline int csystem_find_beneath(int directory, const char *path) {
#ifdef SYS_openat2
  struct open_how how = {
      .flags = O_PATH | O_CLOEXEC,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
#else
  errno = ENOSYS;
  return -1;
#endif
}

/// Finds a file by a path. Links are followed.
static inline int csystem_find(const char *path) {
#ifdef O_PATH
  return open(path, O_PATH | O_CLOEXEC);
#else
  return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
#endif
}

/// Opens the regular file that `csystem_find` has found for reading. Returns its descriptor, or -1.
static inline int csystem_open_found(int found) {
#ifdef O_PATH
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", found);
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
#else
  return dup(found);
#endif
}
