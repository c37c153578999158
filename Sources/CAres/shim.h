#pragma once

// Newer versions mark functions as deprecated for which 1.18 has no replacement.
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#if ARES_VERSION < 0x011000
#error "c-ares 1.16 or later is needed"
#endif

#define CARES_MAX_ADDRESSES 32

// The statuses are macros in some versions and an enumeration in others.
static const int cares_success = ARES_SUCCESS;
static const int cares_no_data = ARES_ENODATA;
static const int cares_not_found = ARES_ENOTFOUND;
static const int cares_bad_name = ARES_EBADNAME;
static const int cares_refused = ARES_EREFUSED;
static const int cares_server_failed = ARES_ESERVFAIL;
static const int cares_format_error = ARES_EFORMERR;
static const int cares_not_implemented = ARES_ENOTIMP;
static const int cares_bad_response = ARES_EBADRESP;
static const int cares_destruction = ARES_EDESTRUCTION;

// Extracts the addresses of an answer (16 bytes each, of which IPv4 uses the first 4), and the shortest time to live in
// seconds, including that of aliases (CNAME). Returns a status of c-ares.
static inline int cares_addresses(const unsigned char *answer, int length, int is_ipv6, unsigned char *addresses,
                                  int *count, int *time_to_live) {
  *count = CARES_MAX_ADDRESSES;
  *time_to_live = 0;
  int status;
  if (is_ipv6) {
    struct ares_addr6ttl found[CARES_MAX_ADDRESSES];
    status = ares_parse_aaaa_reply(answer, length, 0, found, count);
    if (status != ARES_SUCCESS) return status;
    for (int i = 0; i < *count; i++) {
      memcpy(addresses + 16 * i, &found[i].ip6addr, 16);
      if (i == 0 || found[i].ttl < *time_to_live) *time_to_live = found[i].ttl;
    }
  } else {
    struct ares_addrttl found[CARES_MAX_ADDRESSES];
    status = ares_parse_a_reply(answer, length, 0, found, count);
    if (status != ARES_SUCCESS) return status;
    for (int i = 0; i < *count; i++) {
      memcpy(addresses + 16 * i, &found[i].ipaddr, 4);
      if (i == 0 || found[i].ttl < *time_to_live) *time_to_live = found[i].ttl;
    }
  }
  return ARES_SUCCESS;
}

// Makes `server`, which may be an element of a list, the only one of a channel.
static inline int cares_set_server(ares_channel channel, const struct ares_addr_port_node *server) {
  struct ares_addr_port_node alone = *server;
  alone.next = 0;
  return ares_set_servers_ports(channel, &alone);
}

// Milliseconds until a query of the channel times out; -1 if there is none.
static inline int cares_time_left(ares_channel channel) {
  struct timeval left;
  if (!ares_timeout(channel, 0, &left)) return -1;
  return (int)(left.tv_sec * 1000 + left.tv_usec / 1000);
}
