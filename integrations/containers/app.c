/* An app that reads a store with a lease, and switches to each new release:
 *     cc -static -o app app.c moult_reader.c -lsqlite3 -lm
 *
 * usage: app STORE SQL         prints the version and the first result for each release
 *        app --stay STORE SQL  keeps the first release
 */
#include "moult_reader.h"
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int print_first(void *version, int count, char **values, char **names) {
    (void)names;
    printf("%s: %s\n", (const char *)version, count && values[0] ? values[0] : "NULL");
    return fflush(stdout);
}

/* Opens all read-only databases of the release on one connection, and runs the query. */
static int query(const moult_lease *lease, const char *sql, sqlite3 **db) {
    const moult_database *database;
    int status = sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL);
    for (size_t i = 0; !status && (database = moult_database_at(lease, i)); i++) {
        if (database->writable) continue;
        char *attach = sqlite3_mprintf("ATTACH %Q AS \"%w\"", database->uri, database->schema);
        status = attach ? sqlite3_exec(*db, attach, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(attach);
    }
    return status ? status : sqlite3_exec(*db, sql, print_first, (void *)moult_version(lease), NULL);
}

static int fail(const moult_error *error) {
    return fprintf(stderr, "%s: %s\n%s\n", error->what, error->why, error->next), 1;
}

int main(int count, char **words) {
    moult_error error;
    int stays = count == 4 && !strcmp(words[1], "--stay");
    if (count != 3 + stays) return fprintf(stderr, "usage: %s [--stay] STORE SQL\n", words[0]), 64;
    const char *store = words[1 + stays], *sql = words[2 + stays];
    /* The first process of a container is ended only by signals that it handles. */
    signal(SIGTERM, _exit);
    int watch = moult_watch(store, &error);
    if (watch < 0) return fail(&error);
    for (;;) {
        sqlite3 *db = NULL;
        moult_lease *lease = moult_open(store, &error);
        if (!lease) return fail(&error);
        int status = query(lease, sql, &db);
        if (status) return fprintf(stderr, "%s: %s\n", store, db ? sqlite3_errmsg(db) : sqlite3_errstr(status)), 1;
        int switched = 0;
        while (stays || !switched) {
            struct pollfd one = {watch, POLLIN, 0};
            poll(&one, 1, -1);
            moult_watch_clear(watch);
            switched = moult_switched(lease, &error);
            if (switched < 0) return fail(&error);
        }
        sqlite3_close(db);
        /* The lease ends after the last connection is closed: until then, no update removes the files. */
        moult_close(lease);
    }
}
