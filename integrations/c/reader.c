/* Reads one release of a moult store, whole, with plain SQLite:  cc -o reader reader.c -lsqlite3
 *
 * usage: reader STORE MEMBER SQL
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A read lock on a generation's lease file; where an older moult made the store, a flock on its directory. Neither waits. */
static int hold(const char *file, const char *directory) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int descriptor = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), taken;
    if (descriptor >= 0) taken = fcntl(descriptor, F_OFD_SETLK, &lock);
    else if ((descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) return -1;
    else taken = flock(descriptor, LOCK_SH | LOCK_NB);
    if (taken) close(descriptor);
    return taken ? -1 : descriptor;
}

/* Takes a lease on the installed generation and says where it is. The lease ends when the descriptor is closed. */
static int lease(const char *store, char *directory) {
    char link[PATH_MAX], file[PATH_MAX], now[PATH_MAX];
    snprintf(link, sizeof link, "%s/.moult/current", store);
    for (;;) {
        if (!realpath(link, directory)) return -1;
        if (snprintf(file, sizeof file, "%s/.moult/leases%s", store, strrchr(directory, '/')) >= (int)sizeof file) return -1;
        int descriptor = hold(file, directory), code = errno;
        /* It counts only if the generation is still current after the lock: else it might have been removed in between. */
        int same = realpath(link, now) && !strcmp(directory, now);
        if (same && descriptor >= 0) return descriptor;
        if (descriptor >= 0) close(descriptor);
        errno = code;
        if (same) return -1;
    }
}

static int print(void *unused, int count, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < count; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    return puts("") < 0;
}

int main(int count, char **words) {
    char directory[PATH_MAX];
    sqlite3 *db = NULL;
    if (count != 4) return fprintf(stderr, "usage: %s STORE MEMBER SQL\n", words[0]), 64;
    int held = lease(words[1], directory);
    if (held < 0) return perror(words[1]), 1;
    /* immutable: a sealed file never changes, so SQLite needs neither locks nor sidecars. */
    char *uri = sqlite3_mprintf("file:%s/%s?mode=ro&immutable=1", directory, words[2]);
    int ended = uri ? sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) : SQLITE_NOMEM;
    if (!ended) ended = sqlite3_exec(db, words[3], print, NULL, NULL);
    if (ended) fprintf(stderr, "%s: %s\n", words[1], db ? sqlite3_errmsg(db) : sqlite3_errstr(ended));
    sqlite3_free(uri);
    sqlite3_close(db);
    close(held);
    return ended != SQLITE_OK;
}
