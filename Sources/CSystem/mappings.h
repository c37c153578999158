#pragma once

// Shared file mappings that survive truncation by another process. Truncation discards the pages beyond the new end,
// and an access to one raises SIGBUS, which ends the process (mmap(2)). All calls must be in one Swift file: Swift
// emits a header's variables once per file.

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

struct csystem_mappings {
  /// Each mapping's address plus its length in pages of 4096 bytes: the low 12 bits of an address are 0.
  _Atomic(uintptr_t) entries[1024];
  struct sigaction previous;
};

static inline struct csystem_mappings *csystem_mappings(void) {
  static struct csystem_mappings mappings;
  return &mappings;
}

static inline int csystem_replace_entry(uintptr_t old, uintptr_t new) {
  for (uintptr_t place = 0, expected = old; place < 1024; place++, expected = old)
    if (atomic_compare_exchange_strong(&csystem_mappings()->entries[place], &expected, new)) return 1;
  return 0;
}

static inline void csystem_bus_error(int number, siginfo_t *information, void *context) {
  for (int place = 0; place < 1024 && information->si_code == BUS_ADRERR; place++) {
    uintptr_t entry = atomic_load(&csystem_mappings()->entries[place]), start = entry & ~(uintptr_t)4095;
    if ((uintptr_t)information->si_addr - start >= (entry - start) << 12) continue;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap((void *)start, (entry - start) << 12, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) return;
  }
  // A fault is repeated when this function returns. A signal sent by a process is not, so it is raised again.
  sigaction(number, &csystem_mappings()->previous, NULL);
  if (information->si_code <= 0) raise(number);
}

/// Must be called once. After that, an access to a discarded page of a mapping made by `csystem_map` replaces the whole
/// mapping with private zeros. Every other SIGBUS has its previous effect.
static inline void csystem_survive_truncation(void) {
  struct sigaction action = {.sa_sigaction = csystem_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
  sigaction(SIGBUS, &action, &csystem_mappings()->previous);
}

/// Shares the first `length` bytes of the file, which must be a multiple of 4096 below 16 MB. Returns NULL with an
/// errno if that fails: ENOMEM if there are 1024 mappings already.
static inline void *csystem_map(int file, uintptr_t length) {
  void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return NULL;
  if (csystem_replace_entry(0, (uintptr_t)memory + (length >> 12))) return memory;
  munmap(memory, length);
  errno = ENOMEM;
  return NULL;
}

static inline void csystem_unmap(void *memory, uintptr_t length) {
  csystem_replace_entry((uintptr_t)memory + (length >> 12), 0);
  munmap(memory, length);
}
