/* usage: writers STORE NAME [reopen]
 *
 * Two threads write numbered rows to the user database, while another one follows each release and reads, until the standard input
 * ends. Every connection to the user database stays open; read-only databases are detached and attached. With `reopen`, the third
 * thread opens and closes its connection for each read, which SQLite does not survive. Prints "ready", and in the end the number of
 * committed rows of each thread. */
#define _DEFAULT_SOURCE 1
#include "../moult_reader.h"
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *store, *name;
static atomic_int done;

static void fail(const char *what, const char *why) {
    printf("failed: %s: %s\n", what, why);
    exit(1);
}

static sqlite3 *open_notes(const moult_lease *lease) {
    sqlite3 *db = NULL;
    const moult_database *notes = moult_database_named(lease, "notes");
    if (sqlite3_open_v2(notes->uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL)) fail(notes->uri, sqlite3_errmsg(db));
    return db;
}

/* Runs the SQL until no other connection has the lock. SQLite would wait longer after each attempt. */
static void run(sqlite3 *db, const char *sql) {
    for (;;) {
        int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if (code == SQLITE_OK) return;
        if (code != SQLITE_BUSY) fail(sql, sqlite3_errmsg(db));
        usleep(100);
    }
}

static void *write_rows(void *thread) {
    moult_error error;
    moult_lease *lease = moult_open(store, &error);
    if (!lease) fail(error.what, error.why);
    sqlite3 *db = open_notes(lease);
    long rows = 0;
    while (!done) {
        char *sql = sqlite3_mprintf("INSERT INTO note (text) VALUES ('%q %q %d')", name, (const char *)thread, rows + 1);
        run(db, "BEGIN IMMEDIATE");
        run(db, sql);
        run(db, "COMMIT");
        sqlite3_free(sql);
        rows++;
        usleep(500);
    }
    if (sqlite3_close(db)) fail("close", "connection in use");
    moult_close(lease);
    return (void *)rows;
}

/* Attaches the read-only databases of the release, or detaches them. */
static void attach(sqlite3 *db, const moult_lease *lease, int attaches) {
    const moult_database *database;
    for (size_t i = 0; (database = moult_database_at(lease, i)); i++) {
        if (database->writable) continue;
        char *sql = attaches ? sqlite3_mprintf("ATTACH %Q AS \"%w\"", database->uri, database->schema)
                             : sqlite3_mprintf("DETACH \"%w\"", database->schema);
        run(db, sql);
        sqlite3_free(sql);
    }
}

int main(int count, char **words) {
    if (count < 3) return 64;
    store = words[1], name = words[2];
    pthread_t threads[2];
    static char *const names[] = {"first", "second"};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, write_rows, names[i])) fail("pthread_create", names[i]);
    moult_error error;
    sqlite3 *db = NULL;
    struct pollfd input = {0, POLLIN, 0};
    for (long reads = 0; poll(&input, 1, 0) == 0;) {
        moult_lease *lease = moult_open(store, &error);
        if (!lease) fail(error.what, error.why);
        if (!db) db = open_notes(lease);
        attach(db, lease, 1);
        do {
            run(db, "SELECT count(*) FROM main.note; SELECT count(*) FROM words.word");
            if (!reads++) puts("ready"), fflush(stdout);
            if (count < 4) usleep(500);
        } while (count < 4 && poll(&input, 1, 0) == 0 && !moult_switched(lease, &error));
        attach(db, lease, 0);
        if (count > 3) sqlite3_close(db), db = NULL;
        moult_close(lease);
    }
    done = 1;
    for (int i = 0; i < 2; i++) {
        void *rows;
        pthread_join(threads[i], &rows);
        printf("%s %s %ld\n", name, names[i], (long)rows);
    }
    if (db && sqlite3_close(db)) fail("close", "connection in use");
    return 0;
}
