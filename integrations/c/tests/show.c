/* usage: show STORE           prints the release and its databases, one per line, or an error and its code
 *        show --hold STORE    also keeps the lease until its standard input ends */
#include "../moult_reader.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *code_name(int code) {
    switch (code) {
    case ENOENT: return "ENOENT";
    case ENODATA: return "ENODATA";
    case EBUSY: return "EBUSY";
    case EBADMSG: return "EBADMSG";
    case EPROTO: return "EPROTO";
    case EINVAL: return "EINVAL";
    case EACCES: return "EACCES";
    case ENOTDIR: return "ENOTDIR";
    case ELOOP: return "ELOOP";
    case ENAMETOOLONG: return "ENAMETOOLONG";
    case ENOMEM: return "ENOMEM";
    default: return strerror(code);
    }
}

int main(int count, char **words) {
    moult_error error;
    const moult_database *database;
    int holds = count == 3 && !strcmp(words[1], "--hold");
    if (count != 2 + holds) return 64;
    moult_lease *lease = moult_open(words[1 + holds], &error);
    if (!lease) {
        printf("%s: %s: %s; %s\n", code_name(error.code), error.what, error.why, error.next);
        return 1;
    }
    printf("%s %s %s %s\n", moult_product(lease), moult_version(lease), moult_generation(lease), moult_store(lease));
    for (size_t i = 0; (database = moult_database_at(lease, i)); i++)
        printf("%s %s %s %d%s%s\n%s\n%s\n", database->name, database->schema, database->kind, database->writable,
               database->group ? " " : "", database->group ? database->group : "", database->path, database->uri);
    fflush(stdout);
    char byte;
    while (holds && read(0, &byte, 1) > 0) {}
    moult_close(lease);
    return 0;
}
