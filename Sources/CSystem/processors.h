#pragma once

// Number of processors that the process may use. Glibc's call and its macros are hidden without _GNU_SOURCE.

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// Returns 0 if the system does not tell.
static inline int csystem_allowed_processors(void) {
  int count = 0;
#ifdef __linux__
  unsigned long mask[1024]; // 65,536 processors; the kernel refuses a mask that is smaller than its own.
  long length = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  for (long word = 0; word < length / (long)sizeof *mask; word++) count += __builtin_popcountl(mask[word]);
#endif
  return count;
}
