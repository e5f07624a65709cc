/* usage: interface STORE     tests arguments, descriptors, fork and exec */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_GETLK, pipe2 */
#endif
#include "../moult_reader.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(fact) do { if (!(fact)) { printf("line %d: %s\n", __LINE__, #fact); exit(1); } } while (0)

static int descriptors(void) {
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

static void lease_file(const moult_lease *lease, char path[4096]) {
    snprintf(path, 4096, "%s/.moult/leases/%s", moult_store(lease), moult_generation(lease));
}

/* Returns whether a process has a read lock on a lease file. */
static int is_held(const char *path) {
    struct flock lock;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    CHECK(!fcntl(file, F_OFD_GETLK, &lock));
    close(file);
    return lock.l_type != F_UNLCK;
}

static void arguments(const char *store) {
    moult_error error;
    CHECK(!moult_open(NULL, &error) && error.code == EINVAL);
    CHECK(!moult_open("", &error) && error.code == EINVAL);
    CHECK(!moult_open("/no/such/store", NULL));
    CHECK(!moult_open("/no/such/store", &error) && error.code == ENOENT && error.what[0] && error.why[0] && error.next[0]);
    CHECK(moult_watch("/no/such/store", &error) == -1 && error.code == ENOENT);
    char *long_path = (char *)malloc(100001);
    CHECK(long_path);
    memset(long_path, 'x', 100000);
    long_path[100000] = 0;
    CHECK(!moult_open(long_path, &error) && error.code == ENAMETOOLONG);
    free(long_path);
    moult_close(NULL);
    moult_lease *lease = moult_open(store, &error);
    CHECK(lease && !error.code && !error.what[0]);
    CHECK(moult_database_count(lease) == 5 && !moult_database_at(lease, 5) && !moult_database_at(lease, (size_t)-1));
    CHECK(!moult_database_named(lease, NULL) && !moult_database_named(lease, "") && !moult_database_named(lease, "word"));
    CHECK(moult_database_named(lease, "words") == moult_database_at(lease, 0));
    CHECK(moult_switched(lease, NULL) == 0);
    CHECK(!strcmp(moult_reader_version(), MOULT_READER_VERSION));
    moult_close(lease);
}

static void no_descriptor_stays(const char *store) {
    int before = descriptors();
    for (int i = 0; i < 500; i++) {
        moult_close(moult_open(store, NULL));
        moult_close(moult_open("/tmp", NULL));
        int watch = moult_watch(store, NULL);
        CHECK(watch >= 0);
        moult_watch_clear(watch);
        close(watch);
    }
    CHECK(descriptors() == before);
}

static void child_closes(const char *store) {
    char path[4096];
    int status;
    moult_lease *lease = moult_open(store, NULL);
    CHECK(lease);
    lease_file(lease, path);
    CHECK(is_held(path));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        moult_close(lease);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && !status);
    /* The child closed its copy. */
    CHECK(is_held(path));
    moult_close(lease);
    CHECK(!is_held(path));
}

static void program_inherits_nothing(const char *store) {
    char path[4096], byte;
    int input[2], started[2], status;
    moult_lease *lease = moult_open(store, NULL);
    CHECK(lease && !pipe2(input, O_CLOEXEC) && !pipe2(started, O_CLOEXEC));
    lease_file(lease, path);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        dup2(input[0], 0);
        execlp("cat", "cat", (char *)NULL);
        _exit(127);
    }
    close(started[1]);
    /* The child's copy is closed when its program starts. */
    CHECK(read(started[0], &byte, 1) == 0);
    CHECK(is_held(path));
    moult_close(lease);
    CHECK(!is_held(path));
    close(started[0]);
    close(input[0]);
    close(input[1]);
    CHECK(waitpid(child, &status, 0) == child && !status);
}

/* Opens the store with no free descriptor, then one, then two: each time an error, until there are enough. */
static void few_descriptors(const char *store) {
    enum { LIMIT = 64 };
    moult_error error;
    struct rlimit limit;
    int taken[LIMIT], count = 0;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = LIMIT;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    while (count < LIMIT && (taken[count] = dup(0)) >= 0) count++;
    CHECK(moult_watch(store, &error) == -1 && error.code == EMFILE && error.next[0]);
    moult_lease *lease;
    int tries = 0;
    for (; !(lease = moult_open(store, &error)); tries++) {
        CHECK(error.code == EMFILE && count > 0);
        close(taken[--count]);
    }
    CHECK(tries == 3);
    moult_close(lease);
    while (count) close(taken[--count]);
}

int main(int count, char **words) {
    if (count != 2) return 64;
    arguments(words[1]);
    no_descriptor_stays(words[1]);
    child_closes(words[1]);
    program_inherits_nothing(words[1]);
    few_descriptors(words[1]);
    puts("fine");
    return 0;
}
