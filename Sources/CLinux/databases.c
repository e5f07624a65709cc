// The descriptors of database files. SQLite takes POSIX locks, which belong to the process: when any descriptor of a file is closed,
// the kernel drops all locks of the process on that file. SQLite defers such a close while it holds a lock, but between its check
// and the close, another thread may take one. So no descriptor of a file is closed while SQLite has another one of it open. Such a
// descriptor is parked: it is used for the next open of the file, and closed after SQLite has closed its last one. One mutex makes
// the check, the opens and the closes a single step.
#include "CLinux.h"
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// The state of a descriptor, whose number is the index in the table.
struct entry {
    enum { UNKNOWN, OPENED, PARKED } state;
    dev_t device;
    ino_t inode;
};
static struct entry *table;
static int table_size;
// The numbers of opened and of parked descriptors. Other code reads them without the mutex, to skip it in most processes.
static atomic_int opened, parked;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int forks;

int moult_fork_count(void) { return forks; }

static void before_fork(void) { pthread_mutex_lock(&mutex); }
static void after_fork(void) { pthread_mutex_unlock(&mutex); }

// The child has no locks on the files of its parent, and must not use the parent's connections.
static void in_child(void) {
    if (table) memset(table, 0, (size_t)table_size * sizeof *table);
    opened = parked = 0;
    forks++;
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void set_up(void) { pthread_atfork(before_fork, after_fork, in_child); }

static void set(int fd, int state, const struct stat *facts) {
    if (table[fd].state == OPENED) opened--;
    if (table[fd].state == PARKED) parked--;
    table[fd] = (struct entry){state, facts ? facts->st_dev : 0, facts ? facts->st_ino : 0};
    if (state == OPENED) opened++;
    if (state == PARKED) parked++;
}

// Returns 0, or -1 without memory.
static int reserve(int fd) {
    if (fd < table_size) return 0;
    int size = fd + 64;
    struct entry *larger = realloc(table, (size_t)size * sizeof *table);
    if (!larger) return -1;
    memset(larger + table_size, 0, (size_t)(size - table_size) * sizeof *table);
    table = larger;
    table_size = size;
    return 0;
}

// Returns whether a descriptor in the table still belongs to its file. Code that does not know the table may have closed it.
static int is_current(int fd) {
    struct stat facts;
    if (fstat(fd, &facts) == 0 && facts.st_dev == table[fd].device && facts.st_ino == table[fd].inode) return 1;
    set(fd, UNKNOWN, NULL);
    return 0;
}

// Returns a descriptor of the file in this state, with this access mode unless it is -1; -1 if none exists.
static int find(dev_t device, ino_t inode, int state, int access) {
    for (int fd = 0; fd < table_size; fd++) {
        if (table[fd].state != state || table[fd].inode != inode || table[fd].device != device || !is_current(fd)) continue;
        if (access < 0 || (fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND)) == access) return fd;
    }
    return -1;
}

// Returns a parked descriptor for an open of a file, which no longer counts as parked; -1 if none exists.
static int take(int directory, const char *path, int flags) {
    struct stat facts;
    int access = flags & (O_ACCMODE | O_APPEND), need = access == O_RDONLY ? R_OK : R_OK | W_OK;
    if (!parked || flags & (O_EXCL | O_TRUNC | O_DIRECTORY | MOULT_O_PATH)) return -1;
    if (fstatat(directory, path, &facts, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0)) return -1;
    int fd = find(facts.st_dev, facts.st_ino, PARKED, access);
    // The permissions may have changed since it was opened.
    if (fd < 0 || faccessat(directory, path, need, AT_EACCESS)) return -1;
    set(fd, UNKNOWN, NULL);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

// Closes the descriptor and those that are parked for its file, or parks it if SQLite has the file open.
static int close_or_park(int fd, const struct stat *facts) {
    set(fd, UNKNOWN, NULL);
    if (find(facts->st_dev, facts->st_ino, OPENED, -1) >= 0) return set(fd, PARKED, facts), 0;
    for (int other; (other = find(facts->st_dev, facts->st_ino, PARKED, -1)) >= 0;) {
        set(other, UNKNOWN, NULL);
        close(other);
    }
    return close(fd);
}

// Without O_NONBLOCK, the call would wait for the other end of a pipe, and try again after a signal: another user may put a pipe in
// place of a file after its kind was checked. The kernel would also wait until a lease on the file has been given up; with
// O_NONBLOCK, the first call asks for that, and later ones succeed. The kernel itself ends a lease after 45 seconds.
int moult_database_open(const char *path, int flags, int mode) {
    struct timespec pause = {0, 2000000};
    pthread_mutex_lock(&mutex);
    int fd = take(AT_FDCWD, path, flags);
    if (fd < 0) fd = open(path, flags | O_NONBLOCK, mode);
    for (int left = 30000; fd < 0 && errno == EWOULDBLOCK && left > 0; left--) {
        pthread_mutex_unlock(&mutex);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&mutex);
        fd = open(path, flags | O_NONBLOCK, mode);
    }
    int code = errno;
    struct stat facts;
    if (fd >= 0 && fstat(fd, &facts) == 0) {
        if (S_ISFIFO(facts.st_mode)) code = ENXIO;
        else if (S_ISREG(facts.st_mode) && reserve(fd)) code = ENOMEM;
        else code = 0;
        if (code) close(fd), fd = -1;
        else if (S_ISREG(facts.st_mode)) set(fd, OPENED, &facts);
    }
    pthread_mutex_unlock(&mutex);
    if (fd < 0) errno = code;
    return fd;
}

int moult_database_close(int fd) {
    struct stat facts;
    pthread_mutex_lock(&mutex);
    int is_known = fd >= 0 && fd < table_size && table[fd].state == OPENED && fstat(fd, &facts) == 0;
    int result = is_known ? close_or_park(fd, &facts) : close(fd);
    pthread_mutex_unlock(&mutex);
    return result;
}

int moult_open_file(int directory, const char *path, int flags, mode_t mode) {
    int fd = -1;
    if (parked) {
        pthread_mutex_lock(&mutex);
        fd = take(directory, path, flags);
        pthread_mutex_unlock(&mutex);
    }
    return fd >= 0 ? fd : openat(directory, path, flags, mode);
}

int moult_close_file(int fd) {
    struct stat facts;
    if (!opened) return close(fd);
    pthread_mutex_lock(&mutex);
    // Closing a descriptor with O_PATH drops no lock.
    int flags = fcntl(fd, F_GETFL);
    int is_file = flags >= 0 && !(flags & MOULT_O_PATH) && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && !reserve(fd);
    int result = is_file ? close_or_park(fd, &facts) : close(fd);
    pthread_mutex_unlock(&mutex);
    return result;
}

void moult_note_open_files(void) {
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return;
    pthread_mutex_lock(&mutex);
    for (struct dirent *name; (name = readdir(directory));) {
        struct stat facts;
        int fd = atoi(name->d_name);
        // The first three are often redirected to files.
        if (fd < 3 || fstat(fd, &facts) || !S_ISREG(facts.st_mode) || fcntl(fd, F_GETFL) & MOULT_O_PATH) continue;
        if (!reserve(fd) && table[fd].state == UNKNOWN) set(fd, OPENED, &facts);
    }
    pthread_mutex_unlock(&mutex);
    closedir(directory);
}
