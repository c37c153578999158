// The entry point of a program that brings its own C library.
//
// Usually the kernel maps the dynamic linker that a program names (PT_INTERP) and starts it. The name must be an absolute
// path, so a folder that is unpacked anywhere cannot name its own. `examples/operating/release` therefore makes `cstart`
// the entry point of the packed programs, and clears PT_INTERP. cstart does the kernel's part: it maps the dynamic linker
// lib/ld-linux-... beside the program, tells it where the program is (the auxiliary vector, see getauxval(3)), and jumps
// to it. In all other builds this code does not run.
//
// Nothing is relocated yet: no library can be called, and no constant may hold an address.

#include "start.h"

#ifdef __linux__

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

const char *cstart_name(void) { return (const char *)getauxval(AT_EXECFN); }

// The entry point gives the stack pointer to cstart_load, which returns a new one. The word there is the address of the
// dynamic linker.
#if defined(__x86_64__)
#define LINKER "lib/ld-linux-x86-64.so.2"
__asm__(".pushsection .text.cstart,\"axR\",@progbits\n"
        ".global cstart\n"
        ".type cstart, @function\n"
        "cstart:\n"
        "  xorl %ebp, %ebp\n"
        "  movq %rsp, %rdi\n"
        "  subq $32, %rsp\n"  // cstart_load writes to the words below the first
        "  call cstart_load\n"
        "  movq %rax, %rsp\n"
        "  popq %rax\n"
        "  xorl %edx, %edx\n"
        "  jmp *%rax\n"
        ".size cstart, .-cstart\n"
        ".popsection\n");

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
#define LINKER "lib/ld-linux-aarch64.so.1"
__asm__(".pushsection .text.cstart,\"axR\",@progbits\n"
        ".global cstart\n"
        ".type cstart, %function\n"
        "cstart:\n"
        "  mov x29, #0\n"
        "  mov x30, #0\n"
        "  mov x0, sp\n"
        "  sub sp, sp, #32\n"
        "  bl cstart_load\n"
        "  ldr x16, [x0], #8\n"
        "  mov sp, x0\n"
        "  mov x0, #0\n"
        "  br x16\n"
        ".size cstart, .-cstart\n"
        ".popsection\n");

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#endif

#ifdef LINKER

// The compiler must not call memcpy, strlen or a stack protector.
#pragma clang attribute push(__attribute__((no_builtin, no_stack_protector)), apply_to = function)

/// The usual entry point, to which the dynamic linker jumps after it has loaded the libraries.
extern const char _start[] __attribute__((visibility("hidden")));

enum { max_path = 4096, max_links = 40 };

/// The program headers as the dynamic linker gets them.
static Elf64_Phdr headers[33];
/// The path of the dynamic linker.
static char linker[max_path + sizeof LINKER];
/// LD_LIBRARY_PATH for this program and its decoders: the folder of the dynamic linker.
static char library_path[16 + max_path + sizeof LINKER];

static size_t length(const char *text) {
  size_t count = 0;
  while (((const volatile char *)text)[count]) count++;
  return count;
}

static void copy(void *to, const void *from, size_t count) {
  for (size_t index = 0; index < count; index++) ((volatile char *)to)[index] = ((const char *)from)[index];
}

static int has_prefix(const char *text, const char *prefix) {
  for (; *prefix; text++, prefix++)
    if (*text != *prefix) return 0;
  return 1;
}

static __attribute__((noreturn)) void fail(const char *path, const char *reason) {
  system_call(SYS_write, 2, (long)path, (long)length(path), 0, 0, 0);
  system_call(SYS_write, 2, (long)reason, (long)length(reason), 0, 0, 0);
  for (;;) system_call(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

/// Stores the target of a link, and returns its length; not positive if the path is no link.
static long read_link(const char *path, char *target) {
  return system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)target, max_path - 1, 0, 0);
}

/// Stores the path of this program's file, and returns the length of its folder, up to the last slash.
/// `name` is the path that the kernel was given. It counts, with the links that it leads to, if /proc is not mounted.
static size_t find_program(char *path, const char *name) {
  long count = read_link("/proc/self/exe", path);
  if (count <= 0) {
    count = (long)length(name);
    if (count >= max_path) fail(name, ": the path is too long\n");
    copy(path, name, (size_t)count + 1);
    char target[max_path];
    long more;
    for (int links = 0; links < max_links && (more = read_link(path, target)) > 0; links++) {
      if (target[0] == '/') count = 0;
      while (count > 0 && path[count - 1] != '/') count--;
      if (count + more >= max_path) fail(name, ": the path is too long\n");
      copy(path + count, target, (size_t)more);
      count += more;
      path[count] = 0;
    }
  }
  while (count > 0 && path[count - 1] != '/') count--;
  return (size_t)count;
}

/// Maps the dynamic linker. Returns its address, and stores that of its entry point.
static uintptr_t map_linker(uintptr_t page, uintptr_t *entry) {
  static const char damaged[] = ": this file of ImageWorker is damaged\n";
  _Alignas(Elf64_Ehdr) char start[2048];
  int file = (int)system_call(SYS_openat, AT_FDCWD, (long)linker, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) fail(linker, ": this file of ImageWorker cannot be opened\n");
  long count = system_call(SYS_read, file, (long)start, sizeof start, 0, 0, 0);
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)start;
  if (count < (long)sizeof *header || header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > (size_t)count)
    fail(linker, damaged);
  const Elf64_Phdr *first = (const Elf64_Phdr *)(start + header->e_phoff), *end = first + header->e_phnum;
  uintptr_t size = 0;
  for (const Elf64_Phdr *each = first; each < end; each++)
    if (each->p_type == PT_LOAD) size = each->p_vaddr + each->p_memsz;
  if (size == 0) fail(linker, damaged);
  long base = system_call(SYS_mmap, 0, (long)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base < 0 && base > -4096) fail(linker, ": there is no memory\n");
  for (const Elf64_Phdr *each = first; each < end; each++) {
    if (each->p_type != PT_LOAD) continue;
    int protection = (each->p_flags & PF_R ? PROT_READ : 0) | (each->p_flags & PF_W ? PROT_WRITE : 0) |
                     (each->p_flags & PF_X ? PROT_EXEC : 0);
    uintptr_t begin = each->p_vaddr & -page, filled = each->p_vaddr + each->p_filesz;
    uintptr_t next_page = (filled + page - 1) & -page, last = each->p_vaddr + each->p_memsz;
    long mapped = system_call(SYS_mmap, base + (long)begin, (long)(filled - begin), protection, MAP_PRIVATE | MAP_FIXED,
                              file, (long)(each->p_offset & -page));
    if (mapped != base + (long)begin) fail(linker, ": cannot be mapped; is its file system mounted with noexec?\n");
    if (last <= filled) continue;
    // glibc's linker allocates its first memory from the rest of the page, too, so all of it must be zero.
    for (uintptr_t at = filled; at < next_page; at++) ((volatile char *)base)[at] = 0;
    if (last > next_page)
      system_call(SYS_mmap, base + (long)next_page, (long)(last - next_page), protection,
                  MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
  }
  system_call(SYS_close, file, 0, 0, 0, 0, 0);
  *entry = (uintptr_t)base + header->e_entry;
  return (uintptr_t)base;
}

/// Copies the program headers, and adds the PT_INTERP that glibc's linker looks for.
static uintptr_t copy_headers(const Elf64_Phdr *own, size_t count) {
  copy(headers, own, count * sizeof *own);
  uintptr_t bias = 0;
  for (size_t index = 0; index < count; index++) {
    if (headers[index].p_type != PT_PHDR) continue;
    // The linker computes the program's address from it.
    bias = (uintptr_t)own - headers[index].p_vaddr;
    headers[index].p_vaddr = (uintptr_t)headers - bias;
  }
  headers[count].p_type = PT_INTERP;
  headers[count].p_vaddr = (uintptr_t)linker - bias;
  return count + 1;
}

/// - Parameter stack: the number of arguments, the arguments, NULL, the environment, NULL, the auxiliary vector.
/// - Returns: the new stack below an address to jump to.
__attribute__((visibility("hidden"), used)) uintptr_t *cstart_load(uintptr_t *stack) {
  uintptr_t *variable = stack + 1 + stack[0] + 1;
  for (; *variable; variable++) {
    char *text = (char *)*variable;
    // They name libraries of the system, which were made for another C library.
    if (has_prefix(text, "LD_PRELOAD=") || has_prefix(text, "LD_AUDIT=") || has_prefix(text, "LD_LIBRARY_PATH=")) text[0] = '_';
  }
  Elf64_auxv_t *base = NULL, *entry = NULL, *own = NULL, *count = NULL;
  uintptr_t page = 4096;
  const char *name = "imageworker";
  for (Elf64_auxv_t *each = (Elf64_auxv_t *)(variable + 1); each->a_type != AT_NULL; each++) {
    if (each->a_type == AT_PAGESZ) page = each->a_un.a_val;
    if (each->a_type == AT_BASE) base = each;
    if (each->a_type == AT_ENTRY) entry = each;
    if (each->a_type == AT_PHDR) own = each;
    if (each->a_type == AT_PHNUM) count = each;
    if (each->a_type == AT_SECURE && each->a_un.a_val)
      fail(name, ": must run without setuid and capabilities, since the dynamic linker then ignores LD_LIBRARY_PATH\n");
    if (each->a_type == AT_EXECFN) name = (const char *)each->a_un.a_val;
  }
  if (!base || !entry || !own || !count || count->a_un.a_val >= sizeof headers / sizeof *headers)
    fail(name, ": the kernel does not tell where this program is\n");

  size_t folder = find_program(linker, name);
  for (size_t index = 0; index < folder; index++)
    if (linker[index] == ':' || linker[index] == ';' || linker[index] == '$')
      fail(linker, ": the path of ImageWorker's folder must not contain : ; or $, which separate paths in LD_LIBRARY_PATH\n");
  copy(linker + folder, LINKER, sizeof LINKER);
  copy(library_path, "LD_LIBRARY_PATH=", 16);
  copy(library_path + 16, linker, folder + 3);

  uintptr_t address;
  base->a_un.a_val = map_linker(page, &address);
  entry->a_un.a_val = (uintptr_t)_start;
  count->a_un.a_val = copy_headers((const Elf64_Phdr *)own->a_un.a_val, count->a_un.a_val);
  own->a_un.a_val = (uintptr_t)headers;

  // LD_LIBRARY_PATH needs one word more. It gets two, since the stack pointer must stay a multiple of 16.
  uintptr_t *moved = stack - 2, *to = moved;
  for (uintptr_t *from = stack; from < variable; from++, to++) *(volatile uintptr_t *)to = *from;
  *to++ = (uintptr_t)library_path;
  *to++ = (uintptr_t)library_path;
  moved[-1] = address;
  return moved - 1;
}

#pragma clang attribute pop

#endif
#endif
