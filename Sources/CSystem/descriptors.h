#pragma once

// Passing descriptors over a socket. Swift cannot use the macros for control messages.

#ifdef __linux__
#include <linux/memfd.h>
#include <sys/syscall.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CSYSTEM_MAX_DESCRIPTORS 4

/// write(2) that also sends `count` descriptors with the first byte. The receiver gets copies.
static inline ssize_t csystem_send(int socket, const void *bytes, size_t length, const int *descriptors, int count) {
  struct iovec piece = {.iov_base = (void *)bytes, .iov_len = length};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * CSYSTEM_MAX_DESCRIPTORS)];
  if (count > CSYSTEM_MAX_DESCRIPTORS) {
    errno = EINVAL;
    return -1;
  }
  if (count > 0) {
    memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
  }
#ifdef MSG_NOSIGNAL
  return sendmsg(socket, &message, MSG_NOSIGNAL);
#else
  return sendmsg(socket, &message, 0);
#endif
}

/// read(2) that also stores up to CSYSTEM_MAX_DESCRIPTORS received descriptors in `descriptors`, close-on-exec.
static inline ssize_t csystem_receive(int socket, void *bytes, size_t length, int *descriptors, int *count) {
  struct iovec piece = {.iov_base = bytes, .iov_len = length};
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * CSYSTEM_MAX_DESCRIPTORS)];
  struct msghdr message = {
      .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  *count = 0;
#ifdef MSG_CMSG_CLOEXEC
  ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
#else
  ssize_t received = recvmsg(socket, &message, 0);
#endif
  if (received < 0) return received;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int held = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(descriptors, CMSG_DATA(header), sizeof(int) * held);
    *count = held;
  }
  return received;
}

/// Creates an unnamed file in memory. Returns a negative number if that fails.
static inline int csystem_memory_file(void) {
#ifdef __linux__
  return (int)syscall(SYS_memfd_create, "image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
#else
  char path[] = "/tmp/imageworker-XXXXXX";
  int file = mkstemp(path);
  if (file < 0) return file;
  unlink(path);
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
#endif
}

/// Makes the memory file immutable for everyone.
static inline void csystem_seal(int file) {
#ifdef F_ADD_SEALS
  fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
#elif defined(__linux__)
  fcntl(file, 1033 /* F_ADD_SEALS */, 0xF);
#endif
}

/// Creates two connected sockets, which no other program inherits. Returns a negative number if that fails.
static inline int csystem_socket_pair(int *sockets) {
#ifdef SOCK_CLOEXEC
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
#else
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0) return -1;
  fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
  fcntl(sockets[1], F_SETFD, FD_CLOEXEC);
  return 0;
#endif
}

static inline int csystem_set_nonblocking(int file) { return fcntl(file, F_SETFL, O_NONBLOCK); }
