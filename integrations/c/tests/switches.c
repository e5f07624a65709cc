/* usage: switches STORE OLD NEW     switches between two installed releases at the worst moments while a lease is taken, and announces
 * them */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(fact) do { if (!(fact)) { printf("line %d: %s\n", __LINE__, #fact); exit(1); } } while (0)

static void (*before_lock)(void), (*before_open)(void);
static char hidden[PATH_MAX];

static void run_once(void (**moment)(void)) {
    void (*action)(void) = *moment;
    *moment = NULL;
    if (action) action();
}

static int open_later(const char *path, int flags) {
    run_once(&before_open);
    return open(path, flags);
}

static int lock_later(int file, int command, struct flock *lock) {
    run_once(&before_lock);
    return fcntl(file, command, lock);
}

#define open(path, flags) open_later(path, flags)
#define fcntl(file, command, lock) lock_later(file, command, lock)
#include "../moult_reader.c"
#undef open
#undef fcntl

static char old_name[NAME_MAX + 1], new_name[NAME_MAX + 1];

static const char *in_store(const char *directory, const char *name) {
    static char paths[4][2 * PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s%s", hidden, directory, name);
    return path;
}

/* Switches to a release with one rename, as an update does. */
static void point_at(const char *name) {
    char target[NAME_MAX + 16];
    snprintf(target, sizeof target, "generations/%s", name);
    CHECK(!symlink(target, in_store("current", ".new")) && !rename(in_store("current", ".new"), in_store("current", "")));
}

static void switch_release(void) { point_at(new_name); }

static void switch_and_remove(void) {
    switch_release();
    CHECK(!rename(in_store("generations/", old_name), in_store("generations/", "removed")));
}

static void replace_lease_file(void) {
    const char *path = in_store("leases/", old_name);
    CHECK(!unlink(path));
    int file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    CHECK(file >= 0);
    close(file);
}

static int is_held(const char *name) {
    struct flock lock;
    int file = open(in_store("leases/", name), O_RDONLY | O_CLOEXEC);
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    CHECK(file >= 0 && !fcntl(file, F_OFD_GETLK, &lock));
    close(file);
    return lock.l_type != F_UNLCK;
}

/* Checks that the lease is on `expected` and on no other release. */
static void check(const char *store, const char *expected) {
    moult_error error;
    const char *other = strcmp(expected, old_name) ? old_name : new_name;
    moult_lease *lease = moult_open(store, &error);
    if (!lease) printf("%s: %s\n", error.what, error.why);
    CHECK(lease && !before_lock && !before_open);
    CHECK(!strcmp(moult_generation(lease), expected) && is_held(expected) && !is_held(other));
    CHECK(!access(moult_database_at(lease, 0)->path, R_OK) && moult_switched(lease, &error) == 0);
    moult_close(lease);
    CHECK(!is_held(expected));
}

/* Announces with one rename, as an update does. */
static void announce(const char *text, size_t length) {
    int file = open(in_store("announced", ".new"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length && !close(file));
    CHECK(!rename(in_store("announced", ".new"), in_store("announced", "")));
}

static void announce_as(const char *name, const char *transaction) {
    char line[2 * NAME_MAX];
    int length = snprintf(line, sizeof line, "%s %s\n", name, transaction);
    announce(line, (size_t)length);
}

static moult_lease *take(const char *store, const char *expected) {
    moult_error error;
    moult_lease *lease = moult_open(store, &error);
    CHECK(lease && !strcmp(moult_generation(lease), expected) && moult_switched(lease, &error) == 0);
    return lease;
}

static void check_announced(moult_lease *lease) {
    moult_error error;
    CHECK(moult_switched(lease, &error) == 1 && !error.code && !error.what[0]);
    moult_close(lease);
}

/* A release is announced when the content of all its databases is there, later than the switch. */
static void check_announcements(const char *store) {
    static const char *const unknown[] = {"", "1.0.0+ab", "1.0.0+ab 20", "1.0.0+ab 20\n\n", "../x+1 20\n", "1.0.0+ab  20\n",
                                          "1.0.0+ab 20 more\n", " 20\n", "1.0.0+ab \n"};
    point_at(old_name);
    announce_as(old_name, "20261130031500-0a1b2c3d");
    moult_lease *before = take(store, old_name);
    point_at(new_name);
    CHECK(moult_switched(before, NULL) == 0);
    moult_lease *during = take(store, new_name);
    announce_as(new_name, "20261130031501-0a1b2c3d");
    check_announced(before);
    check_announced(during);

    /* A second update to the same release. */
    before = take(store, new_name);
    announce_as(new_name, "20261130031502-0a1b2c3d");
    check_announced(before);

    /* An update that is undone. */
    before = take(store, new_name);
    point_at(old_name);
    during = take(store, old_name);
    CHECK(moult_switched(before, NULL) == 0);
    point_at(new_name);
    CHECK(moult_switched(before, NULL) == 0);
    moult_close(before);
    check_announced(during);

    /* The announcement is read after an update that began before the lease was taken. */
    announce_as(old_name, "20261130031503-0a1b2c3d");
    before = take(store, new_name);
    point_at(old_name);
    check_announced(before);

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        during = take(store, old_name);
        announce(unknown[i], strlen(unknown[i]));
        CHECK(moult_switched(during, NULL) == 0);
        moult_close(during);
        before = take(store, old_name);
        CHECK(!before->announced[0]);
        announce_as(old_name, "20261130031504-0a1b2c3d");
        check_announced(before);
    }
    announce("1.0.0+ab 20\n\0", 13);
    before = take(store, old_name);
    CHECK(!before->announced[0]);
    const char *path = in_store("announced", "");
    CHECK(!unlink(path) && moult_switched(before, NULL) == 0);
    CHECK(!mkdir(path, 0755) && moult_switched(before, NULL) == 0 && !rmdir(path));
    CHECK(!mkfifo(path, 0644) && moult_switched(before, NULL) == 0 && !unlink(path));
    CHECK(!symlink("announced", path) && moult_switched(before, NULL) == 0 && !unlink(path));
    moult_close(before);
}

int main(int count, char **words) {
    if (count != 4) return 64;
    CHECK(snprintf(hidden, sizeof hidden, "%s/.moult", words[1]) < (int)sizeof hidden);
    snprintf(old_name, sizeof old_name, "%s", words[2]);
    snprintf(new_name, sizeof new_name, "%s", words[3]);

    check_announcements(words[1]);
    point_at(old_name);
    before_lock = replace_lease_file;
    check(words[1], old_name);
    before_lock = switch_release;
    check(words[1], new_name);
    point_at(old_name);
    before_open = switch_release;
    check(words[1], new_name);
    point_at(old_name);
    before_open = switch_and_remove;
    check(words[1], new_name);
    puts("fine");
    return 0;
}
