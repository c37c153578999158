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

enum csystem_access {
  /// Only the file's status can be read. A FIFO or a device is not opened.
  CSYSTEM_FIND,
  CSYSTEM_READ
};

static inline int csystem_flags(enum csystem_access access) {
#ifdef O_PATH
  if (access == CSYSTEM_FIND) return O_PATH | O_CLOEXEC;
#endif
  return O_RDONLY | O_NONBLOCK | O_CLOEXEC;
}

/// Opens a file or directory below a directory: no link is followed, and no path leads out. Returns its descriptor, or -1.
static inline int csystem_open_beneath(int directory, const char *path, enum csystem_access access) {
#ifdef SYS_openat2
  struct open_how how = {
      .flags = csystem_flags(access),
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
#else
  errno = ENOSYS;
  return -1;
#endif
}

/// Opens a file. Links are followed.
static inline int csystem_open(const char *path, enum csystem_access access) { return open(path, csystem_flags(access)); }

/// Opens a regular file that was opened with CSYSTEM_FIND for reading. Returns its descriptor, or -1; ENOENT if /proc is
/// not mounted.
static inline int csystem_open_found(int found) {
#ifdef O_PATH
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", found);
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
#else
  return dup(found);
#endif
}
