/* Runs SQL on all databases of a moult store, with plain SQLite:  cc -o reader reader.c moult_reader.c -lsqlite3
 *
 * usage: reader STORE SQL
 */
#include "moult_reader.h"
#include <sqlite3.h>
#include <stdio.h>

static int print_row(void *unused, int count, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < count; i++) printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    return puts("") < 0;
}

/* Opens the user database as main, and attaches the others under their names; a group would need its own connection. */
static int open_all(const moult_lease *lease, sqlite3 **db) {
    const char *first = ":memory:";
    const moult_database *database;
    for (size_t i = 0; (database = moult_database_at(lease, i)); i++)
        if (!database->group && !sqlite3_stricmp(database->schema, "main")) first = database->uri;
    /* SQLITE_OPEN_URI also applies to each ATTACH on this connection. */
    int status = sqlite3_open_v2(first, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL);
    if (!status) status = sqlite3_busy_timeout(*db, 10000);
    for (size_t i = 0; !status && (database = moult_database_at(lease, i)); i++) {
        if (database->group || database->uri == first) continue;
        char *sql = sqlite3_mprintf("ATTACH %Q AS \"%w\"", database->uri, database->schema);
        status = sql ? sqlite3_exec(*db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(sql);
    }
    return status;
}

int main(int count, char **words) {
    moult_error error;
    sqlite3 *db = NULL;
    if (count != 3) return fprintf(stderr, "usage: %s STORE SQL\n", words[0]), 64;
    moult_lease *lease = moult_open(words[1], &error);
    if (!lease) return fprintf(stderr, "%s: %s\n%s\n", error.what, error.why, error.next), 1;
    int status = open_all(lease, &db);
    if (!status) status = sqlite3_exec(db, words[2], print_row, NULL, NULL);
    if (status) fprintf(stderr, "%s: %s\n", words[1], db ? sqlite3_errmsg(db) : sqlite3_errstr(status));
    sqlite3_close(db);
    /* The lease ends after the last connection is closed: until then, no update removes the files. */
    moult_close(lease);
    return status != SQLITE_OK;
}
