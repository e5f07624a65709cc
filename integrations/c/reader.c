/* Reads one release of a moult store, whole, with plain SQLite:  cc -o reader reader.c -lsqlite3
 *
 * usage: reader STORE MEMBER SQL
 */
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes a lease on the installed generation and says where it is. The lease ends when the descriptor is closed. */
static int lease(const char *store, char *directory) {
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s/.moult/current", store);
    for (;;) {
        struct stat held, current;
        int descriptor = open(link, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor < 0 || flock(descriptor, LOCK_SH) || fstat(descriptor, &held)) return -1;
        /* It counts only if it is still current after the lock: else it might have been removed in between. */
        if (realpath(link, directory) && !stat(directory, &current) && held.st_ino == current.st_ino) return descriptor;
        close(descriptor);
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
