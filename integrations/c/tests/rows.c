/* usage: moult watch --rows --json ... | rows     prints each changed row: database, table, + ~ - or !, and the values of its key */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getline */
#endif
#include "../moult_reader.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact) do { if (!(fact)) { printf("line %d: %s\n", __LINE__, #fact); exit(1); } } while (0)

static int print_row(void *context, const char *database, const char *table, moult_change change, const moult_value *key, size_t values) {
    printf("%s %s %c", database, table ? table : "*", "+~-!"[change]);
    for (size_t i = 0; i < values; i++) printf(" %d:%s", key[i].type, key[i].bytes ? key[i].bytes : "");
    puts("");
    ++*(int *)context;
    return 0;
}

static int stop(void *context, const char *database, const char *table, moult_change change, const moult_value *key, size_t values) {
    (void)context, (void)database, (void)table, (void)change, (void)key, (void)values;
    return 7;
}

static int rows(const char *line, int *count) {
    moult_error error;
    *count = 0;
    int result = moult_rows(line, strlen(line), print_row, count, &error);
    CHECK(result == 0 || (result == -1 && error.code == EBADMSG && *error.what && *error.why));
    return result;
}

int main(void) {
    int count;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) CHECK(!rows(line, &count));
    CHECK(!rows("{\"changes\": [{\"name\": \"d\", \"tables\": [{\"name\": \"t\", \"key\": [\"a\", \"b\"], \"inserted\": "
                "[[-5, \"x\\u00e9\"], [1.5, null]], \"updated\": [[{\"blob\": \"00ff\"}, {\"text\": \"6100\"}]], \"deleted\": []}, "
                "{\"name\": \"v\", \"reload\": \"it is a virtual table\"}]}, {\"name\": \"e\", \"reload\": \"why\"}]}", &count));
    CHECK(count == 5);
    CHECK(!rows("{\"changes\": []}", &count) && count == 0);
    const char *const one = "{\"changes\": [{\"name\": \"e\", \"reload\": \"why\"}]}";
    CHECK(moult_rows(one, strlen(one), stop, NULL, NULL) == 7);
    const char *const bad[] = {
        "", "{", "[]", "{}", "{\"changes\": {}}", "{\"changes\": [1]}", "{\"changes\": [{\"name\": \"d\"}]}",
        "{\"changes\": [{\"name\": \"d\", \"tables\": [{\"name\": \"t\"}]}]}",
        "{\"changes\": [{\"name\": \"d\", \"tables\": [{\"name\": \"t\", \"inserted\": [1], \"updated\": [], \"deleted\": []}]}]}",
        "{\"changes\": [{\"name\": \"d\", \"tables\": [{\"name\": \"t\", \"inserted\": [[{\"blob\": \"0\"}]]}]}]}",
        "{\"changes\": [{\"name\": \"d\", \"tables\": [{\"name\": \"t\", \"inserted\": [[{\"blob\": \"0g\"}]]}]}]}",
        "{\"changes\": [{\"name\": \"d\", \"tables\": [{\"name\": \"t\", \"inserted\": [[true]]}]}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(rows(bad[i], &count) == -1);
    free(line);
    return 0;
}
