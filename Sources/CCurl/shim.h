// libcurl: curl_easy_setopt and curl_easy_getinfo are variadic, so each type of argument gets a function.
#pragma once
#include <curl/curl.h>

static inline CURLcode moult_curl_set_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode moult_curl_set_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode moult_curl_set_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode moult_curl_set_blob(CURL *h, CURLoption o, const void *bytes, size_t count) {
    struct curl_blob blob = {.data = (void *)bytes, .len = count, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(h, o, &blob);
}
static inline CURLcode moult_curl_set_offset(CURL *h, CURLoption o, curl_off_t v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode moult_curl_set_callback(CURL *h, CURLoption o, size_t (*v)(char *, size_t, size_t, void *)) {
    return curl_easy_setopt(h, o, v);
}
static inline CURLcode moult_curl_set_open_socket(CURL *h, curl_socket_t (*v)(void *, curlsocktype, struct curl_sockaddr *)) {
    return curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, v);
}
static inline CURLcode moult_curl_get_string(CURL *h, CURLINFO i, char **v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode moult_curl_get_long(CURL *h, CURLINFO i, long *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLSHcode moult_curl_share(CURLSH *s, curl_lock_data v) { return curl_share_setopt(s, CURLSHOPT_SHARE, v); }
static inline CURLcode moult_curl_get_offset(CURL *h, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(h, i, v); }
