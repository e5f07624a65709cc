/* A libFuzzer target for the store MOULT_FUZZ_STORE, which `moult apply` has created. The input is the manifest of the store;
 * after a first byte of 's', it is the settings; after 'r', a line of moult watch. Every path that the library returns must be valid and in the store. */
#define _GNU_SOURCE
#include "../moult_reader.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(fact) do { if (!(fact)) { fprintf(stderr, "line %d: %s\n", __LINE__, #fact); abort(); } } while (0)

static char store[PATH_MAX], manifest[3 * PATH_MAX], settings[2 * PATH_MAX], shipped[1 << 20];
static size_t shipped_size;

static void put_file(const char *path, const void *bytes, size_t size) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}

int LLVMFuzzerInitialize(int *count, char ***words) {
    char link[PATH_MAX + 16], name[NAME_MAX];
    (void)count, (void)words;
    CHECK(getenv("MOULT_FUZZ_STORE") && realpath(getenv("MOULT_FUZZ_STORE"), store));
    snprintf(link, sizeof link, "%s/.moult/current", store);
    ssize_t length = readlink(link, name, sizeof name);
    CHECK(length > 0);
    snprintf(manifest, sizeof manifest, "%s/.moult/%.*s/manifest.json", store, (int)length, name);
    snprintf(settings, sizeof settings, "%s/moult.json", store);
    int file = open(manifest, O_RDONLY | O_CLOEXEC);
    length = read(file, shipped, sizeof shipped);
    CHECK(length > 0);
    shipped_size = (size_t)length;
    close(file);
    return 0;
}

static int read_row(void *unused, const char *database, const char *table, moult_change change, const moult_value *key, size_t values) {
    (void)unused;
    CHECK(database && (table || change == MOULT_RELOAD));
    for (size_t i = 0; i < values; i++) CHECK(!key[i].bytes || !key[i].bytes[key[i].size]);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/:._~%-?=&";
    static const char usual[] = "{\"moult\": 1, \"product\": \"org.example.set\"}";
    moult_error error;
    const moult_database *one;
    if (size > 0 && bytes[0] == 'r') {
        moult_rows((const char *)bytes + 1, size - 1, read_row, NULL, &error);
        return 0;
    }
    int is_settings = size > 0 && bytes[0] == 's';
    put_file(manifest, is_settings ? shipped : (const char *)bytes, is_settings ? shipped_size : size);
    put_file(settings, is_settings ? (const char *)bytes + 1 : usual, is_settings ? size - 1 : sizeof usual - 1);
    moult_lease *lease = moult_open(store, &error);
    if (!lease) {
        CHECK(error.code && error.what[0] && error.why[0]);
        return 0;
    }
    CHECK(moult_database_count(lease) > 0 && *moult_version(lease) && *moult_product(lease));
    for (size_t i = 0; (one = moult_database_at(lease, i)); i++) {
        CHECK(moult_database_named(lease, one->name) == one && *one->schema && *one->kind && one->path[0] == '/');
        CHECK(!strncmp(one->uri, "file:///", 8) && strspn(one->uri, allowed) == strlen(one->uri));
        if (!is_settings) CHECK(!strncmp(one->path, store, strlen(store)) && !strstr(one->path, "/../"));
        CHECK(!one->writable == (strstr(one->uri, "immutable=1") != NULL));
    }
    moult_close(lease);
    return 0;
}
