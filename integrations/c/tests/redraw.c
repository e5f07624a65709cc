/* usage: redraw STORE
 *
 * Reads all databases when a release was announced, and keeps what it has read, as a view does. For each line of its standard input,
 * prints the version of the lease and the versions in each database that the last reading saw. */
#include "../moult_reader.h"
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char seen[512];

static void fail(const char *what, const char *why) {
    printf("failed: %s: %s\n", what, why);
    exit(1);
}

/* Reads the single version in a database. */
static void read_version(const moult_lease *lease, const char *name, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    const moult_database *database = moult_database_named(lease, name);
    if (!database || sqlite3_open_v2(database->uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL)) fail(name, "not opened");
    sqlite3_busy_timeout(db, 20000);
    if (sqlite3_prepare_v2(db, sql, -1, &query, NULL) || sqlite3_step(query) != SQLITE_ROW) fail(sql, sqlite3_errmsg(db));
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof seen - used, " %s", (const char *)sqlite3_column_text(query, 0));
    sqlite3_finalize(query);
    if (sqlite3_close(db)) fail("close", name);
}

static void redraw(const moult_lease *lease) {
    snprintf(seen, sizeof seen, "%s", moult_version(lease));
    read_version(lease, "words", "SELECT DISTINCT version FROM word");
    read_version(lease, "places", "SELECT DISTINCT version FROM place");
    read_version(lease, "prices", "SELECT group_concat(DISTINCT version) FROM price WHERE own = 0");
}

int main(int count, char **words) {
    moult_error error;
    char line[16];
    if (count != 2) return 64;
    int watch = moult_watch(words[1], &error), state = 1;
    if (watch < 0) fail(error.what, error.why);
    moult_lease *lease = NULL;
    for (;;) {
        struct pollfd polls[2] = {{watch, POLLIN, 0}, {0, POLLIN, 0}};
        if (state == 1) {
            moult_close(lease);
            if (!(lease = moult_open(words[1], &error))) fail(error.what, error.why);
            redraw(lease);
        } else if (poll(polls, 2, -1) < 0) {
            fail("poll", words[1]);
        }
        moult_watch_clear(watch);
        if ((state = moult_switched(lease, &error)) < 0) fail(error.what, error.why);
        if (state == 0 && polls[1].revents) {
            if (read(0, line, sizeof line) <= 0) break;
            puts(seen);
            fflush(stdout);
        }
    }
    moult_close(lease);
    close(watch);
    return 0;
}
