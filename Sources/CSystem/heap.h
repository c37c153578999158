#pragma once

// How much freed memory a process keeps for what comes next.

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/// Keeps up to so many bytes that are free at the end of the heap, and takes pieces of up to a quarter of that from there.
/// By default all above 128 kB goes back, so that each image would pay again for the pages of the one before.
static inline void csystem_keep_freed(int bytes) {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_MMAP_THRESHOLD, bytes / 4);
#else
  (void)bytes;
#endif
}
