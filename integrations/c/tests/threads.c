/* usage: threads STORE [COUNT]     COUNT threads (default 2000), several at a time, open, read, query and close a store */
#include "../moult_reader.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AT_ONCE = 50 };
static const char *store;
static const moult_lease *common;

static char failure;

static void *work(void *unused) {
    (void)unused;
    moult_error error;
    for (int i = 0; i < 3; i++) {
        moult_lease *lease = moult_open(store, &error);
        const moult_database *words = lease ? moult_database_named(lease, "words") : NULL;
        if (!words || access(words->path, R_OK) || moult_switched(lease, &error) < 0) return &failure;
        /* One lease for all threads. */
        if (!moult_database_named(common, "places") || moult_switched(common, &error) < 0) return &failure;
        moult_close(lease);
        if (moult_open("/dev/null/no-store", &error) || !error.code) return &failure;
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[AT_ONCE];
    moult_error error;
    int most = count > 2 ? atoi(words[2]) : 2000;
    store = words[1];
    moult_lease *lease = moult_open(store, &error);
    if (!lease) return printf("%s: %s\n", error.what, error.why), 1;
    common = lease;
    for (int done = 0; done < most; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&threads[i], NULL, work, NULL)) return puts("cannot create a thread"), 1;
        for (int i = 0; i < AT_ONCE; i++) {
            void *failed;
            if (pthread_join(threads[i], &failed) || failed) return puts("a thread failed"), 1;
        }
    }
    moult_close(lease);
    printf("%d threads, %d leases\n", most, 3 * most);
    return 0;
}
