/* usage: follow STORE [write]
 *
 * Reads all databases of a store on one connection until its standard input ends, and follows each switch. Every result
 * must come from the release of the lease. Prints "ready" after the first result, and the number of reads at the end. */
#include "../moult_reader.h"
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what, const char *why) {
    printf("failed: %s: %s\n", what, why);
    exit(1);
}

static void run(sqlite3 *db, const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message)) fail(sql, message);
}

/* Opens the user database for the life of the process: closing it could drop the locks of other threads. */
static sqlite3 *open_notes(const moult_lease *lease) {
    sqlite3 *db = NULL;
    const moult_database *notes = moult_database_named(lease, "notes");
    if (!notes || strcmp(notes->schema, "main")) fail("notes", "not the main database");
    if (sqlite3_open_v2(notes->uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL)) fail(notes->uri, sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 20000);
    return db;
}

/* Attaches the databases of the release, or detaches its read-only ones. Writable databases stay attached. */
static void attach(sqlite3 *db, const moult_lease *lease, int is_first, int attaches) {
    const moult_database *database;
    for (size_t i = 0; (database = moult_database_at(lease, i)); i++) {
        if (!strcmp(database->schema, "main") || (database->writable && !is_first)) continue;
        char *sql = attaches ? sqlite3_mprintf("ATTACH %Q AS \"%w\"", database->uri, database->schema)
                             : sqlite3_mprintf("DETACH \"%w\"", database->schema);
        run(db, sql);
        sqlite3_free(sql);
    }
}

/* Each sealed table has 500 rows of the version of the lease. The shared table changes as a whole, even while it is open. */
static void check(sqlite3 *db, const char *version) {
    static const char sql[] =
        "SELECT (SELECT count(*) FROM words.word WHERE version = ?1), (SELECT count(*) FROM geo.place WHERE version = ?1),"
        " count(*), count(DISTINCT version) FROM prices.price WHERE own = 0";
    sqlite3_stmt *query = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &query, NULL)) fail("prepare", sqlite3_errmsg(db));
    sqlite3_bind_text(query, 1, version, -1, SQLITE_STATIC);
    if (sqlite3_step(query) != SQLITE_ROW) fail("query", sqlite3_errmsg(db));
    int counts[4];
    for (int i = 0; i < 4; i++) counts[i] = sqlite3_column_int(query, i);
    sqlite3_finalize(query);
    if (counts[0] != 500 || counts[1] != 500 || counts[2] != 500 || counts[3] != 1) fail(version, "mixed releases");
}

int main(int count, char **words) {
    moult_error error;
    long switches = 0, reads = 0, wakes = 0;
    if (count < 2) return 64;
    sqlite3 *db = NULL;
    int watch = moult_watch(words[1], &error), writes = count > 2;
    if (watch < 0) fail(error.what, error.why);
    for (int ends = 0; !ends; switches++) {
        moult_lease *lease = moult_open(words[1], &error);
        if (!lease) fail(error.what, error.why);
        if (!db) db = open_notes(lease);
        attach(db, lease, !switches, 1);
        int state = 0;
        while (state == 0 && !ends) {
            check(db, moult_version(lease));
            if (writes) run(db, "INSERT INTO main.note (text) VALUES ('from a reader')");
            if (!reads++) puts("ready"), fflush(stdout);
            struct pollfd polls[2] = {{watch, POLLIN, 0}, {0, POLLIN, 0}};
            /* Half of the polls do not wait, so that reads coincide with the switch itself. */
            if (poll(polls, 2, reads % 2 ? 0 : 20) > 0 && polls[0].revents) moult_watch_clear(watch), wakes++;
            char byte;
            ends = (polls[1].revents & (POLLIN | POLLHUP)) && read(0, &byte, 1) <= 0;
            if ((state = moult_switched(lease, &error)) < 0) fail(error.what, error.why);
        }
        attach(db, lease, 0, 0);
        moult_close(lease);
    }
    if (sqlite3_close(db)) fail("close", "connection in use");
    close(watch);
    printf("read %ld times, %ld releases, %ld wakes\n", reads, switches, wakes);
    return 0;
}
