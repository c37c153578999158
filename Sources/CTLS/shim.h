#pragma once

#include <openssl/ssl.h>

// The TLS connections that libcurl's OpenSSL backend makes: CURLOPT_SSL_CTX_FUNCTION gives the SSL_CTX, and
// CURLINFO_TLS_SSL_PTR the SSL.

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

// Has the callback told of each record that is read on connections of this SSL_CTX, before it is decrypted. `watch`
// must outlive them.
static inline void ctls_watch_records(void *ssl_ctx, struct ctls_record_watch *watch) {
  SSL_CTX_set_msg_callback(ssl_ctx, ctls_message);
  SSL_CTX_set_msg_callback_arg(ssl_ctx, watch);
}

// Whether bytes have been read from the socket that nobody has asked for yet, decrypted or not.
static inline int ctls_has_unread(const void *ssl) { return SSL_has_pending(ssl); }

static inline int ctls_is_http2(const void *ssl) {
  const unsigned char *protocol = 0;
  unsigned int count = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &count);
  return count == 2 && protocol[0] == 'h' && protocol[1] == '2';
}

// Makes every further read fail as if the other side had closed the connection. It may be called while a record is
// read. A shutdown of the socket would leave what the kernel has received already.
static inline void ctls_end_input(void *ssl) {
  BIO *empty = BIO_new(BIO_s_null());
  if (empty) SSL_set0_rbio(ssl, empty);
}
