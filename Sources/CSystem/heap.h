#pragma once

// Limits the freed memory that a process keeps for later allocations.

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/// Keeps up to `bytes` free bytes at the end of the heap, and allocates blocks of up to a quarter of that from the
/// heap. By default everything above 128 kB is returned to the system, so that each image would fault in its pages
/// again.
static inline void csystem_keep_freed(int bytes) {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_MMAP_THRESHOLD, bytes / 4);
#else
  (void)bytes;
#endif
}
