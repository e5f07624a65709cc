/* An app that writes to a database while moult works on it, and acknowledges each row whose commit returned.
 *
 *   companion [-n FIRST] [-c COUNT] [-t SECONDS] [-s SEED] [-p LOW,HIGH] [-k HOLD] MODE DATABASE ACKS SQL...
 *
 * MODE     connects   opens, inserts and closes each time
 *          stays      keeps one connection open
 *          wal        like `connects`, and sets WAL mode each time, as many libraries do
 *          rollback   like `connects`, and sets rollback mode each time
 *          reads      keeps a read transaction open, and writes nothing
 *          creates    like `connects`, and creates the database if the path is free
 * SQL      statements of one transaction; ?1 is the number of the transaction, which begins at FIRST. A statement whose table is
 *          missing is left out, except `CREATE`, which only `creates` has.
 * ACKS     gets a line for each transaction, in one write: `ack NUMBER STATEMENTS BEGUN ENDED`, with a mask of the statements that
 *          were executed and times of the monotonic clock in nanoseconds, or `error NUMBER TEXT`
 *
 * Between two transactions it pauses for LOW to HIGH milliseconds, depending only on SEED; a connection stays open for HOLD
 * milliseconds after its commit. The program ends after COUNT transactions or SECONDS, or when ACKS.stop exists. companion.py does
 * the same with Python's module, which apps use. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct { long first, count, seconds, low, high, hold; unsigned long seed; const char *mode, *path, *acks; } wish = {
    .first = 1, .count = 100000, .seconds = 60, .low = 5, .high = 20, .seed = 1};
static char stop[4096];
static int out;
static sqlite3 *db;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int is(const char *mode) { return !strcmp(wish.mode, mode); }

/* access() ignores the rights with which the app may be another user. */
static int exists(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0;
}

static int stopped(void) { return exists(stop); }

static void pause_for(long milliseconds) {
    for (long long end = now() + milliseconds * 1000000LL; now() < end && !stopped();) usleep(1000);
}

static void tell(const char *line) {
    if (write(out, line, strlen(line)) < 0) exit(70);
}

/* The same sequence as in companion.py. */
static long next_pause(void) {
    wish.seed = (wish.seed * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return wish.low + (long)(wish.seed >> 8) % (wish.high - wish.low + 1);
}

/* A read-only database is a link into the store. Root could write to it, but apps do not. */
static int is_sealed(void) {
    char target[8];
    return readlink(wish.path, target, sizeof target) >= 7 && !strncmp(target, ".moult/", 7);
}

static int run(const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL); }

static int connect_to_database(void) {
    if (db) return SQLITE_OK;
    int flags = SQLITE_OPEN_READWRITE | (is("creates") ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(wish.path, &db, flags, NULL);
    if (code != SQLITE_OK) return code;
    /* The file was opened when the path was no link yet, or is not used. */
    if (is_sealed()) return SQLITE_READONLY;
    sqlite3_busy_timeout(db, 5000);
    /* Without this setting, a power cut may bring back the journal of the last transaction. */
    run("PRAGMA synchronous = EXTRA");
    if (is("wal")) code = run("PRAGMA journal_mode = WAL");
    /* SQLite refuses to leave WAL mode while other connections are open. */
    if (is("rollback") && (code = run("PRAGMA journal_mode = DELETE")) == SQLITE_BUSY) code = SQLITE_OK;
    return code;
}

/* Executes the statements whose tables exist; returns a mask of them. */
static int insert(long number, char **sql, int count, long *mask) {
    for (int i = 0; i < count; i++) {
        sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(db, sql[i], -1, &statement, NULL);
        if (code == SQLITE_ERROR && !strncmp(sqlite3_errmsg(db), "no such table", 13)) continue;
        if (code != SQLITE_OK) return code;
        if (sqlite3_bind_parameter_count(statement)) sqlite3_bind_int64(statement, 1, number);
        sqlite3_step(statement);
        code = sqlite3_finalize(statement);
        if (code != SQLITE_OK) return code;
        *mask |= 1L << i;
    }
    return SQLITE_OK;
}

static void transact(long number, char **sql, int count) {
    char line[1024];
    long mask = 0;
    long long begun = now();
    int code = connect_to_database();
    if (code == SQLITE_OK) code = run("BEGIN IMMEDIATE");
    if (code == SQLITE_OK) code = insert(number, sql, count, &mask);
    if (code == SQLITE_OK) code = run("COMMIT");
    if (code == SQLITE_OK) {
        snprintf(line, sizeof line, "ack %ld %ld %lld %lld\n", number, mask, begun, now());
        tell(line);
    } else {
        /* A release may move the database to another path, or make it read-only. */
        if (exists(wish.path) && !is_sealed()) {
            snprintf(line, sizeof line, "error %ld %.900s (%d)\n", number, db ? sqlite3_errmsg(db) : "cannot open", code);
            tell(line);
        }
        if (db && !sqlite3_get_autocommit(db)) run("ROLLBACK");
    }
    if (code == SQLITE_OK && wish.hold) pause_for(wish.hold);
    if (!is("stays") || (code != SQLITE_OK && is_sealed())) {
        sqlite3_close(db);
        db = NULL;
    }
}

static int read_for_long(void) {
    if (connect_to_database() != SQLITE_OK || run("BEGIN; SELECT count(*) FROM sqlite_schema") != SQLITE_OK) return 1;
    tell("ack 0 0 0 0\n");
    pause_for(wish.seconds * 1000);
    run("COMMIT");
    sqlite3_close(db);
    return 0;
}

int main(int count, char **words) {
    for (int option; (option = getopt(count, words, "+n:c:t:s:p:k:")) != -1;) switch (option) {
        case 'n': wish.first = atol(optarg); break;
        case 'c': wish.count = atol(optarg); break;
        case 't': wish.seconds = atol(optarg); break;
        case 's': wish.seed = strtoul(optarg, NULL, 10); break;
        case 'p': if (sscanf(optarg, "%ld,%ld", &wish.low, &wish.high) != 2 || wish.high < wish.low) return 64; break;
        case 'k': wish.hold = atol(optarg); break;
        default: return 64;
    }
    if (count - optind < 3) return 64;
    wish.mode = words[optind], wish.path = words[optind + 1], wish.acks = words[optind + 2];
    snprintf(stop, sizeof stop, "%s.stop", wish.acks);
    if ((out = open(wish.acks, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) < 0) return 70;
    if (is("reads")) return read_for_long();
    long long end = now() + wish.seconds * 1000000000LL;
    for (long i = 0; i < wish.count && now() < end && !stopped(); i++) {
        transact(wish.first + i, words + optind + 3, count - optind - 3);
        pause_for(next_pause());
    }
    sqlite3_close(db);
    return 0;
}
