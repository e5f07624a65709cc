/* usage: switches STORE OLD NEW     switches between two installed releases at the worst moments while a lease is taken */
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

int main(int count, char **words) {
    if (count != 4) return 64;
    CHECK(snprintf(hidden, sizeof hidden, "%s/.moult", words[1]) < (int)sizeof hidden);
    snprintf(old_name, sizeof old_name, "%s", words[2]);
    snprintf(new_name, sizeof new_name, "%s", words[3]);

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
