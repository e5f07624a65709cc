/* usage: memory STORE     opens a store while each allocation in turn fails: must report an error, and not crash or leak */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long left;
static int is_refused(void) { return left > 0 && --left == 0 ? (errno = ENOMEM, 1) : 0; }
static void *try_malloc(size_t size) { return is_refused() ? NULL : malloc(size); }
static void *try_calloc(size_t count, size_t size) { return is_refused() ? NULL : calloc(count, size); }
static void *try_realloc(void *old, size_t size) { return is_refused() ? NULL : realloc(old, size); }
static char *try_strdup(const char *text) { return is_refused() ? NULL : strdup(text); }
static char *try_strndup(const char *text, size_t size) { return is_refused() ? NULL : strndup(text, size); }
static char *try_realpath(const char *path, char *to) { return is_refused() ? NULL : realpath(path, to); }
static int try_vasprintf(char **to, const char *format, va_list values) { return is_refused() ? -1 : vasprintf(to, format, values); }
#undef strdup
#undef strndup
#define malloc try_malloc
#define calloc try_calloc
#define realloc try_realloc
#define strdup try_strdup
#define strndup try_strndup
#define realpath try_realpath
#define vasprintf try_vasprintf
#include "../moult_reader.c"

int main(int count, char **words) {
    if (count != 2) return 64;
    for (long nth = 1;; nth++) {
        moult_error error;
        left = nth;
        moult_lease *lease = moult_open(words[1], &error);
        if (lease) {
            moult_close(lease);
            if (left) return printf("%ld allocations refused, one after the other\n", nth - 1), nth < 30;
            return printf("allocation %ld was refused, and there was no error\n", nth), 1;
        }
        if (error.code != ENOMEM) return printf("allocation %ld: code %d: %s: %s\n", nth, error.code, error.what, error.why), 1;
    }
}
