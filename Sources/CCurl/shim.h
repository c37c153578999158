#pragma once

// curl's type-checking macros need constant options. These wrappers check by their own types.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#if LIBCURL_VERSION_NUM < 0x075800
#error "libcurl 7.88 or later is needed (CURLOPT_QUICK_EXIT, and curl_multi_socket_action, which 7.87 broke)"
#endif

// Swift cannot call variadic functions, so there is one wrapper for each type of argument.

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(easy, option, value);
}

typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode ccurl_set_data_callback(CURL *easy, CURLoption option, ccurl_data_callback callback) {
  return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode ccurl_set_open_socket_callback(CURL *easy, curl_opensocket_callback callback) {
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline CURLcode ccurl_set_close_socket_callback(CURL *easy, curl_closesocket_callback callback, void *context) {
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, context);
  return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

static inline CURLcode ccurl_set_progress_callback(CURL *easy, curl_xferinfo_callback callback, void *context) {
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
  return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, callback);
}

static inline CURLcode ccurl_set_tls_context_callback(CURL *easy, curl_ssl_ctx_callback callback, void *context) {
  curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, context);
  return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, callback);
}

static inline CURLcode ccurl_set_before_request_callback(CURL *easy, curl_prereq_callback callback) {
  return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_socket(CURL *easy, CURLINFO info, curl_socket_t *value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_list(CURL *easy, CURLINFO info, struct curl_slist **value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
  return curl_easy_getinfo(easy, info, value);
}

// The SSL of the connection that the handle uses now; null without TLS, or if the backend is not OpenSSL.
static inline void *ccurl_openssl(CURL *easy) {
  struct curl_tlssessioninfo *info = 0;
  if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info) return 0;
  return info->backend == CURLSSLBACKEND_OPENSSL ? info->internals : 0;
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_set_socket_callback(CURLM *multi, curl_socket_callback callback, void *context) {
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
  return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
}

static inline CURLSHcode ccurl_share(CURLSH *share, curl_lock_data data) {
  return curl_share_setopt(share, CURLSHOPT_SHARE, data);
}

// Returns a pointer into `address`: the address is longer than the field, which Swift would copy.
static inline const struct sockaddr *ccurl_address(const struct curl_sockaddr *address) { return &address->addr; }
