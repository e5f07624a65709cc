/* libmoult-reader: read the databases of a moult store from C, or from any language that can call C.
 *
 * The library does not open databases and does not link SQLite. Two copies of SQLite in one process break each other's
 * file locks, so the app opens the paths and URIs from here with the SQLite that it already has:
 *
 *     moult_error error;
 *     moult_lease *lease = moult_open("store", &error);
 *     if (!lease) return fprintf(stderr, "%s: %s\n%s\n", error.what, error.why, error.next), 1;
 *     const moult_database *phrases = moult_database_named(lease, "phrases");
 *     sqlite3_open_v2(phrases->uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL);
 *     ...
 *     sqlite3_close(db);
 *     moult_close(lease);
 *
 * A lease keeps the files of one release in place, even if an update installs another release. Open all databases
 * through one lease, so that they belong to one release, and close the lease after the last connection. A lease blocks no
 * update. `moult status --processes` lists it, and it ends with the process.
 *
 * URIs
 *   Use `uri`, with SQLITE_OPEN_URI in the flags of the connection. ATTACH follows the flags of the connection's first
 *   open: without SQLITE_OPEN_URI there, SQLite takes the URI in an ATTACH for a file name. Bind the URI as a parameter,
 *   `ATTACH ? AS phrases`, or quote it as an SQL string.
 *   - A read-only database has `mode=ro&immutable=1`. Such a file never changes, so SQLite needs no locks. Without
 *     `immutable=1`, root can write to it, and `PRAGMA journal_mode=WAL` on a connection changes every attached file.
 *   - The URI of a writable database has no `mode`: the connection decides whether it writes. Open it without
 *     SQLITE_OPEN_CREATE, or SQLite creates an empty file if it is missing. SQLite locks it as usual. An update may lock or
 *     replace its content while it is open, so set a busy timeout.
 *     A user without write permission can read it, but in WAL mode only while another process has it open.
 *
 * One copy of SQLite
 *   Open writable databases, by `path` or by `uri`, with one copy of SQLite only, even if each copy is in a different library of
 *   the process: the system's libsqlite3, one in the app, one in a wrapper or in an extension module. The copies do not know each
 *   other's locks. When one closes a file, the kernel drops the locks of the other, and rows are lost.
 *
 * A wrapper around SQLite without the flag
 *   SQLite reads URIs on every connection if it was built with SQLITE_USE_URI (sqlite3_compileoption_used("USE_URI")
 *   is 1), or after sqlite3_config(SQLITE_CONFIG_URI, 1) before the first connection. If neither is possible, do not pass
 *   URIs: SQLite takes `file:food.db` for a file name and creates an empty file of that name. (The URIs from here are
 *   absolute, and fail with SQLITE_CANTOPEN.) Open `path` instead. Open a read-only database on a separate connection with
 *   SQLITE_OPEN_READONLY, and never ATTACH it to a connection that can write.
 *
 * Threads and processes
 *   Keep one connection to each writable database for the life of the process, and DETACH and ATTACH only read-only databases
 *   when another release is installed. When a descriptor of a file is closed, the kernel drops all locks of the process on that
 *   file. If one thread closes a database in rollback mode while another one takes a lock, rows can be lost.
 *   After fork, SQLite in the child has a copy of its record of the parent's locks, but the kernel leaves the locks with the parent.
 *   The child must not use a connection of the parent. Its own connections have no locks either if the parent was in a transaction,
 *   had a statement that was not reset, or had a database in WAL mode open. Start a program in the child, or fork before the first
 *   connection.
 *   The library has no global state. A lease does not change after moult_open: any number of threads may use it at once,
 *   and moult_close must be the last call for it. A child process created by fork shares the lease, which lasts until both
 *   processes have closed it; a program started with exec does not inherit it. No function writes to the store, prints, or
 *   ends the process. moult_open waits for up to two seconds if another process has locked the release; no other function
 *   waits.
 */
#ifndef MOULT_READER_H
#define MOULT_READER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOULT_READER_VERSION "0.1.0"

#if defined __GNUC__
#define MOULT_API __attribute__((visibility("default")))
#else
#define MOULT_API
#endif

/* Why a call failed, as NUL-terminated UTF-8 texts; long texts are truncated. `next` may be empty. */
typedef struct moult_error {
    /* A value of errno:
     *   ENOENT   no store at the path
     *   ENODATA  the store has no release yet
     *   EBUSY    another process has locked the release
     *   EBADMSG  a record of the store is damaged
     *   EPROTO   the store needs a newer version of this library
     *   EINVAL   an argument is wrong
     * or another value that the kernel reported, such as EACCES, EMFILE or ENOMEM. */
    int code;
    char what[1024]; /* what failed, and where */
    char why[1024];  /* the cause */
    char next[1024]; /* what to do */
} moult_error;

/* One database of a release. The texts are valid until moult_close. Later versions may append members. */
typedef struct moult_database {
    const char *name;
    /* The schema name on a connection that has all databases of its group: "main" for the first database of kind "user",
     * otherwise the name under which to attach it. If no database is "main", open ":memory:" and attach all databases. */
    const char *schema;
    /* "reference", "shared", "user" or "cache" */
    const char *kind;
    /* The absolute path, not escaped. Open a writable database with one copy of SQLite only (see above). */
    const char *path;
    /* The same file for SQLite, with every special character escaped: file:///...?mode=ro&immutable=1 for a read-only database,
     * file:///... for a writable one. Open a writable database with one copy of SQLite only (see above). */
    const char *uri;
    /* 0: only releases change the database; 1: the app writes to it */
    int writable;
    /* NULL for databases without a group, which share one connection. Otherwise, open the databases of each group on a
     * separate connection, starting with the database whose schema is "main". Releases with more than ten databases to
     * attach have groups. */
    const char *group;
} moult_database;

typedef struct moult_lease moult_lease;

/* Returns the version of the library at run time. */
MOULT_API const char *moult_reader_version(void);

/* Takes a lease on the installed release of a store directory. Returns NULL and fills `error`, which may be NULL, if that
 * fails. Symbolic links in `store` are resolved now and not again. */
MOULT_API moult_lease *moult_open(const char *store, moult_error *error);

/* Ends the lease. NULL is allowed. */
MOULT_API void moult_close(moult_lease *lease);

/* Returns the store's directory, absolute and without symbolic links. */
MOULT_API const char *moult_store(const moult_lease *lease);
/* Describe the release: its product ("org.example.app"), its version ("2.0.0"), and the name of its directory
 * ("2.0.0+0a1b2c3d"), which no other release of the store has. */
MOULT_API const char *moult_product(const moult_lease *lease);
MOULT_API const char *moult_version(const moult_lease *lease);
MOULT_API const char *moult_generation(const moult_lease *lease);

/* Return the databases in the order of the manifest; NULL for an index or a name that the release does not have. */
MOULT_API size_t moult_database_count(const moult_lease *lease);
MOULT_API const moult_database *moult_database_at(const moult_lease *lease, size_t index);
MOULT_API const moult_database *moult_database_named(const moult_lease *lease, const char *name);

/* Returns 1 if a release has been announced since the lease was taken, 0 if not, -1 and `error` on failure. An update announces its
 * release when the content of all databases is there. A lease that is taken during an update may be on the new release before its
 * shared and user databases have their content; when they have, the answer is 1. So open a new lease whenever it is 1, also if
 * moult_generation stays the same. */
MOULT_API int moult_switched(const moult_lease *lease, moult_error *error);

/* Returns a file descriptor that becomes readable (poll, select, epoll) when a release may have been announced; -1 and `error` on
 * failure. Close it with close(). Create it before you take the lease, so that no release is missed:
 *
 *     int watch = moult_watch(store, &error);
 *     for (;;) {
 *         moult_lease *lease = moult_open(store, &error);
 *         ... open or attach the databases ...
 *         while (moult_switched(lease, &error) == 0) {
 *             struct pollfd one = {watch, POLLIN, 0};
 *             poll(&one, 1, -1);
 *             moult_watch_clear(watch);
 *         }
 *         ... detach the read-only databases ...
 *         moult_close(lease);
 *     }
 */
MOULT_API int moult_watch(const char *store, moult_error *error);

/* Discards the pending events. Call it before moult_switched, not after. */
MOULT_API void moult_watch_clear(int watch);

/* Changed rows: the program `moult watch` compares the rows, because this library opens no database. Start it, and pass each line that
 * it prints to moult_rows:
 *
 *     FILE *lines = popen("moult watch --rows --json --store store --since 1.0.0+0a1b2c3d", "r");
 *     while ((size = getline(&line, &capacity, lines)) > 0)
 *         moult_rows(line, (size_t)size, row, NULL, &error);
 */
typedef enum { MOULT_NULL, MOULT_INTEGER, MOULT_REAL, MOULT_TEXT, MOULT_BLOB } moult_type;

/* A value of a key. `bytes` has the text, the bytes of a blob, or the digits of a number, with a NUL at the end that does not count. */
typedef struct moult_value {
    moult_type type;
    long long integer;
    const char *bytes;
    size_t size;
} moult_value;

/* MOULT_RELOAD: read the whole table again, or the whole database if `table` is NULL; the reason is in `key[0].bytes`. */
typedef enum { MOULT_INSERTED, MOULT_UPDATED, MOULT_DELETED, MOULT_RELOAD } moult_change;

/* Gets one changed row: its key is the rowid, or the primary key of a table WITHOUT ROWID. The texts are valid during the call. Returns 0
 * to go on, or another number, which ends moult_rows. */
typedef int (*moult_row)(void *context, const char *database, const char *table, moult_change change, const moult_value *key, size_t values);

/* Calls `row` for each changed row in a line of `moult watch --rows --json`. Returns 0, or the number that ended it; -1 and `error` if the
 * line is not such a line. */
MOULT_API int moult_rows(const char *line, size_t size, moult_row row, void *context, moult_error *error);

#ifdef __cplusplus
}
#endif
#endif
