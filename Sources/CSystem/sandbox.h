#pragma once

// Restrictions that a process can put on itself. They cannot be lifted. Each function returns 0, or -1 with errno.

#include <stdint.h>
#include <sys/resource.h>

/// Lowers a limit; never raises it.
static inline int csystem_limit(int resource, uint64_t value) {
  struct rlimit limit;
  if (getrlimit(resource, &limit)) return -1;
  if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max) limit.rlim_max = value;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(resource, &limit);
}

/// Limits memory to this many bytes (0 for no limit), descriptors to 64, and files to 4 GB; forbids core files.
static inline int csystem_limit_resources(uint64_t memory) {
  if (csystem_limit(RLIMIT_CORE, 0) || csystem_limit(RLIMIT_NOFILE, 64)) return -1;
  if (csystem_limit(RLIMIT_FSIZE, (uint64_t)4 << 30)) return -1;
  return memory ? csystem_limit(RLIMIT_DATA, memory) : 0;
}

#ifdef __linux__

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/// Stops set-user-ID bits from giving privileges to programs that it starts. Landlock and seccomp require that.
static inline int csystem_no_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

/// Kills this process when the thread that started it ends.
static inline int csystem_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

/// Forbids core files, and access to its memory by other processes of the same user.
static inline int csystem_not_dumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// MARK: Landlock, https://docs.kernel.org/userspace-api/landlock.html

// Declared here, since the headers of many systems are older than their kernels.
struct csystem_landlock_rules {
  uint64_t files, network, scopes;
};

#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_restrict_self 446
#endif

/// Forbids everything that this kernel's Landlock covers: opening, making and removing files, starting programs, TCP,
/// and signals to other processes and abstract sockets. With `allows_reading`, files can be read and programs started.
///
/// It applies to the calling thread and to those that it starts later.
static inline int csystem_landlock(int allows_reading) {
  long version = syscall(__NR_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
  if (version < 1) return -1;
  const uint64_t execute_and_read = 1 | 1 << 2 | 1 << 3;
  struct csystem_landlock_rules rules = {.files = (1 << 13) - 1};
  size_t size = sizeof rules.files;
  if (version >= 2) rules.files |= 1 << 13;  // linking and renaming to other directories
  if (version >= 3) rules.files |= 1 << 14;  // truncating
  if (version >= 4) rules.network = 3, size = offsetof(struct csystem_landlock_rules, scopes);
  if (version >= 5) rules.files |= 1 << 15;  // ioctl on devices
  if (version >= 6) rules.scopes = 3, size = sizeof rules;
  if (allows_reading) rules.files &= ~execute_and_read;
  int set = (int)syscall(__NR_landlock_create_ruleset, &rules, size, 0);
  if (set < 0) return -1;
  long result = syscall(__NR_landlock_restrict_self, set, 0);
  int error = errno;
  close(set);
  errno = error;
  return (int)result;
}

// MARK: seccomp, https://docs.kernel.org/userspace-api/seccomp_filter.html

#if defined(__x86_64__)
#define CSYSTEM_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CSYSTEM_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef CSYSTEM_ARCHITECTURE

// Little endian: the lower half of an argument comes first.
#define CSYSTEM_LOAD(FIELD) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, FIELD))
#define CSYSTEM_LOAD_ARGUMENT(INDEX) CSYSTEM_LOAD(args[INDEX])
#define CSYSTEM_LOAD_UPPER_ARGUMENT(INDEX) \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[INDEX]) + 4)
#define CSYSTEM_SKIP_UNLESS(VALUE, COUNT) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (VALUE), 0, (COUNT))
#define CSYSTEM_ANSWER(ACTION) BPF_STMT(BPF_RET | BPF_K, (ACTION))
#define CSYSTEM_REFUSE CSYSTEM_ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define CSYSTEM_THREAD 0x10000  // CLONE_THREAD, which the headers hide
#define CSYSTEM_PASS(CALL) CSYSTEM_SKIP_UNLESS(__NR_##CALL, 1), CSYSTEM_ANSWER(SECCOMP_RET_ALLOW)

static inline int csystem_install(struct sock_filter *program, unsigned short length) {
  struct sock_fprog filter = {.len = length, .filter = program};
  long result = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  if (result > 0) errno = ESRCH;  // a thread that does not take the filter
  return result == 0 ? 0 : -1;
}

/// Allows all threads only the calls that decoding needs: for memory, time, threads, and reading and writing open
/// files; and those of a parent of decoding processes: fork(2), waiting, and signals. Everything else fails with EPERM:
/// opening files, sockets, starting programs.
static inline int csystem_seccomp(void) {
  struct sock_filter program[] = {
      CSYSTEM_LOAD(arch),
      CSYSTEM_SKIP_UNLESS(CSYSTEM_ARCHITECTURE, 1),
      BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
      CSYSTEM_ANSWER(SECCOMP_RET_KILL_PROCESS),
      CSYSTEM_LOAD(nr),

      CSYSTEM_PASS(read),
      CSYSTEM_PASS(write),
      CSYSTEM_PASS(readv),
      CSYSTEM_PASS(writev),
      CSYSTEM_PASS(pread64),
      CSYSTEM_PASS(pwrite64),
      CSYSTEM_PASS(lseek),
      CSYSTEM_PASS(fstat),
      CSYSTEM_PASS(ftruncate),
      CSYSTEM_PASS(fallocate),
      CSYSTEM_PASS(close),
      CSYSTEM_PASS(recvmsg),
      CSYSTEM_PASS(sendmsg),
      CSYSTEM_PASS(ppoll),
#ifdef __NR_poll
      CSYSTEM_PASS(poll),
#endif

      CSYSTEM_PASS(mmap),
      CSYSTEM_PASS(munmap),
      CSYSTEM_PASS(mremap),
      CSYSTEM_PASS(mprotect),
      CSYSTEM_PASS(madvise),
      CSYSTEM_PASS(brk),

      CSYSTEM_PASS(futex),
      CSYSTEM_PASS(set_robust_list),
#ifdef __NR_rseq
      CSYSTEM_PASS(rseq),
#endif
      CSYSTEM_PASS(membarrier),
      CSYSTEM_PASS(sched_yield),
      CSYSTEM_PASS(sched_getaffinity),
      CSYSTEM_PASS(gettid),
      CSYSTEM_PASS(getpid),
      CSYSTEM_PASS(getppid),
      CSYSTEM_PASS(wait4),
      CSYSTEM_PASS(kill),
      CSYSTEM_PASS(tgkill),
      CSYSTEM_PASS(seccomp),
      CSYSTEM_PASS(exit),
      CSYSTEM_PASS(exit_group),

      CSYSTEM_PASS(rt_sigaction),
      CSYSTEM_PASS(rt_sigprocmask),
      CSYSTEM_PASS(rt_sigreturn),
      CSYSTEM_PASS(sigaltstack),
      CSYSTEM_PASS(restart_syscall),

      CSYSTEM_PASS(clock_gettime),
      CSYSTEM_PASS(clock_getres),
      CSYSTEM_PASS(clock_nanosleep),
      CSYSTEM_PASS(nanosleep),
      CSYSTEM_PASS(gettimeofday),
      CSYSTEM_PASS(getrandom),
      CSYSTEM_PASS(getrusage),
      CSYSTEM_PASS(sysinfo),
      CSYSTEM_PASS(uname),

      // cairo checks access to a font file that is already open. The answer is always yes, since its value does not
      // matter.
#ifdef __NR_access
      CSYSTEM_SKIP_UNLESS(__NR_access, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ERRNO | 0),
#endif
      CSYSTEM_SKIP_UNLESS(__NR_faccessat, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ERRNO | 0),

      // Allows threads and fork. clone3 has its flags in memory; libc falls back to clone if it gets ENOSYS.
      CSYSTEM_SKIP_UNLESS(__NR_clone3, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
      CSYSTEM_SKIP_UNLESS(__NR_clone, 5),
      CSYSTEM_LOAD_ARGUMENT(0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CSYSTEM_THREAD, 1, 0),
      CSYSTEM_SKIP_UNLESS(0x1200000 /* CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID */ | SIGCHLD, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      // Allows naming threads and memory, and ending with the parent.
      CSYSTEM_SKIP_UNLESS(__NR_prctl, 6),
      CSYSTEM_LOAD_ARGUMENT(0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_NAME, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 1, 0),
      CSYSTEM_SKIP_UNLESS(0x53564d41 /* PR_SET_VMA */, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      // Allows reading limits, not setting them: the pointer to new ones must be null.
      CSYSTEM_SKIP_UNLESS(__NR_prlimit64, 6),
      CSYSTEM_LOAD_ARGUMENT(2),
      CSYSTEM_SKIP_UNLESS(0, 3),
      CSYSTEM_LOAD_UPPER_ARGUMENT(2),
      CSYSTEM_SKIP_UNLESS(0, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      // Allows reading the flags of descriptors, not setting them.
      CSYSTEM_SKIP_UNLESS(__NR_fcntl, 5),
      CSYSTEM_LOAD_ARGUMENT(1),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* F_GETFD */, 1, 0),
      CSYSTEM_SKIP_UNLESS(3 /* F_GETFL */, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      // In newer libraries, fstat is fstatat with AT_EMPTY_PATH. At worst that reveals the size of a file by its path.
      CSYSTEM_SKIP_UNLESS(__NR_newfstatat, 4),
      CSYSTEM_LOAD_ARGUMENT(3),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1000 /* AT_EMPTY_PATH */, 0, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      CSYSTEM_REFUSE,
  };
  return csystem_install(program, sizeof program / sizeof *program);
}

/// Takes away what `csystem_seccomp` allows the parent. Short, because it is installed for each image.
static inline int csystem_seccomp_child(void) {
  struct sock_filter program[] = {
      CSYSTEM_LOAD(nr),
      CSYSTEM_SKIP_UNLESS(__NR_clone, 4),
      CSYSTEM_LOAD_ARGUMENT(0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CSYSTEM_THREAD, 0, 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      // Allows signals to the process itself only (abort).
      CSYSTEM_SKIP_UNLESS(__NR_tgkill, 4),
      CSYSTEM_LOAD_ARGUMENT(0),
      CSYSTEM_SKIP_UNLESS((uint32_t)getpid(), 1),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,

      CSYSTEM_SKIP_UNLESS(__NR_prctl, 4),
      CSYSTEM_LOAD_ARGUMENT(0),
      CSYSTEM_SKIP_UNLESS(PR_SET_PDEATHSIG, 1),
      CSYSTEM_REFUSE,
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),

      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_kill, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_wait4, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 1, 0),
      CSYSTEM_ANSWER(SECCOMP_RET_ALLOW),
      CSYSTEM_REFUSE,
  };
  return csystem_install(program, sizeof program / sizeof *program);
}

#else

static inline int csystem_seccomp(void) {
  errno = ENOSYS;
  return -1;
}

static inline int csystem_seccomp_child(void) { return csystem_seccomp(); }

#endif

#else

// Other systems have none of these locks.

static inline int csystem_no_new_privileges(void) { return -1; }
static inline int csystem_die_with_parent(void) { return -1; }
static inline int csystem_not_dumpable(void) { return -1; }
static inline int csystem_landlock(int allows_reading) { return (void)allows_reading, -1; }
static inline int csystem_seccomp(void) { return -1; }
static inline int csystem_seccomp_child(void) { return -1; }

#endif
