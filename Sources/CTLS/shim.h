#pragma once

#include <openssl/ssl.h>

// The TLS connections of libcurl's OpenSSL backend: CURLOPT_SSL_CTX_FUNCTION passes the SSL_CTX, and
// CURLINFO_TLS_SSL_PTR returns the SSL.

typedef void (*ctls_record_callback)(void *ssl, void *context);

struct ctls_record_watch {
  ctls_record_callback callback;
  void *context;
};

static inline void ctls_message(
    int written, int version, int type, const void *bytes, size_t count, SSL *ssl, void *watch) {
  (void)version, (void)bytes, (void)count;
  if (written || type != SSL3_RT_HEADER) return;
  const struct ctls_record_watch *record_watch = watch;
  record_watch->callback(ssl, record_watch->context);
}

// Calls the callback before each record that is read on a connection of this SSL_CTX is decrypted. `watch` must outlive
// those connections.
static inline void ctls_watch_records(void *ssl_ctx, struct ctls_record_watch *watch) {
  SSL_CTX_set_msg_callback(ssl_ctx, ctls_message);
  SSL_CTX_set_msg_callback_arg(ssl_ctx, watch);
}

// Whether unrequested bytes were read from the socket, decrypted or not.
static inline int ctls_has_unread(const void *ssl) { return SSL_has_pending(ssl); }

static inline int ctls_is_http2(const void *ssl) {
  const unsigned char *protocol = 0;
  unsigned int count = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &count);
  return count == 2 && protocol[0] == 'h' && protocol[1] == '2';
}

// Makes every further read fail as if the peer had closed the connection. It may be called while a record is being
// read. Shutting the socket down would leave the data that the kernel has received already.
static inline void ctls_end_input(void *ssl) {
  BIO *empty = BIO_new(BIO_s_null());
  if (empty) SSL_set0_rbio(ssl, empty);
}
