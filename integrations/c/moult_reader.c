/* libmoult-reader: see moult_reader.h. One file in the common subset of C11 and C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "moult_reader.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The same limits as in the command. */
enum {
    MOST_BYTES = 1 << 20,
    MOST_DEPTH = 64,
    MOST_NAME = 128,
    MOST_LINE = 1024,
    PATIENCE_MILLISECONDS = 2000,
    /* Another attempt is only needed if a release was installed during the attempt before it. */
    MOST_ATTEMPTS = 1000
};

/* --- errors */

/* Copies a text without control characters; a text that is too long is cut between two characters. */
static void put_text(char *to, size_t size, const char *text) {
    size_t length = strlen(text), end = length < size ? length : size - 1;
    if (end < length) while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80) end--;
    for (size_t i = 0; i < end; i++) to[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? '?' : text[i];
    to[end] = 0;
}

/* Copies advice, unless it is too long or has a control character: part of a command, or one with other characters, could be a
 * different command. */
static void put_advice(char *to, size_t size, const char *text) {
    to[0] = 0;
    if (strlen(text) >= size) return;
    for (size_t i = 0; text[i]; i++) if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) return;
    strcpy(to, text);
}

/* Formats a text, and copies it with one of the functions above. */
__attribute__((format(printf, 4, 5))) static void put(void (*copy)(char *, size_t, const char *), char *to, size_t size, const char *format, ...) {
    char text[3 * PATH_MAX];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    copy(to, size, length < 0 ? "" : text);
}

#define WHAT(error, ...) put(put_text, (error)->what, sizeof(error)->what, __VA_ARGS__)
#define WHY(error, ...) put(put_text, (error)->why, sizeof(error)->why, __VA_ARGS__)
#define NEXT(error, ...) put(put_advice, (error)->next, sizeof(error)->next, __VA_ARGS__)

/* Sets the cause to the text of an errno value. */
static void because(moult_error *error, int code) {
    char text[128];
    error->code = code;
#if defined __GLIBC__
    const char *message = strerror_r(code, text, sizeof text);
#else
    const char *message = strerror_r(code, text, sizeof text) ? "unknown error" : text;
#endif
    WHY(error, "%s (errno %d)", message, code);
}

static int out_of_memory(moult_error *error, const char *store) {
    WHAT(error, "cannot open the store %s", store);
    because(error, ENOMEM);
    return -1;
}

/* Returns a path quoted as an argument for a shell. */
static const char *quoted(const char *path, char *to, size_t size) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+,:@";
    if (*path && *path != '-' && strspn(path, plain) == strlen(path)) return path;
    size_t at = 0;
    to[at++] = '\'';
    for (; *path && at + 6 < size; path++) {
        if (*path == '\'') memcpy(to + at, "'\\''", 4), at += 4;
        else to[at++] = *path;
    }
    to[at++] = '\'';
    to[at] = 0;
    return to;
}

/* --- memory */

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...) {
    char *text = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0) text = NULL;
    va_end(values);
    return text;
}

/* --- JSON: a document as a list of nodes, each followed by the nodes inside it */

typedef enum { J_NULL, J_FALSE, J_TRUE, J_NUMBER, J_STRING, J_ARRAY, J_OBJECT } json_type;

typedef struct {
    json_type type;
    /* The position of a string or number in the document. */
    uint32_t start, length;
    /* The index after the last node inside this node. */
    uint32_t end;
} json_node;

typedef struct {
    /* Strings are decoded in place, because no escape is shorter than its character. */
    unsigned char *bytes;
    uint32_t size, position, line, line_start;
    int depth, draft, no_memory;
    json_node *nodes;
    uint32_t count, capacity;
    const char *fault;
} json;

static int json_fail(json *j, const char *fault) {
    if (!j->fault) j->fault = fault;
    return -1;
}

static int json_peek(const json *j) { return j->position < j->size ? j->bytes[j->position] : -1; }

static int json_add(json *j, json_type type) {
    if (j->count == j->capacity) {
        uint32_t capacity = j->capacity ? 2 * j->capacity : 64;
        json_node *nodes = (json_node *)realloc(j->nodes, capacity * sizeof *nodes);
        if (!nodes) return j->no_memory = 1, json_fail(j, "out of memory");
        j->nodes = nodes, j->capacity = capacity;
    }
    json_node *node = &j->nodes[j->count];
    node->type = type, node->start = node->length = 0, node->end = ++j->count;
    return 0;
}

static int json_comment(json *j) {
    int kind = j->position + 1 < j->size ? j->bytes[j->position + 1] : -1;
    if (!j->draft || (kind != '/' && kind != '*')) return json_fail(j, "a '/' outside a string");
    for (j->position += 2; j->position < j->size; j->position++) {
        if (j->bytes[j->position] == '\n') {
            if (kind == '/') return 0;
            j->line++, j->line_start = j->position + 1;
        }
        if (kind == '*' && j->bytes[j->position] == '*' && j->position + 1 < j->size && j->bytes[j->position + 1] == '/')
            return j->position += 2, 0;
    }
    return kind == '/' ? 0 : json_fail(j, "an unterminated comment");
}

static int json_space(json *j) {
    for (;;) {
        int c = json_peek(j);
        if (c == '/') {
            if (json_comment(j)) return -1;
            continue;
        }
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return 0;
        j->position++;
        if (c == '\n') j->line++, j->line_start = j->position;
    }
}

/* Returns the length of the UTF-8 character at `at`; 0 if it is not valid: overlong, a surrogate, or above U+10FFFF. */
static uint32_t utf8_length(const unsigned char *at, uint32_t left) {
    unsigned first = at[0], low = 0x80, high = 0xBF;
    uint32_t length = 0;
    if (first < 0x80) length = 1;
    else if (first >= 0xC2 && first < 0xE0) length = 2;
    else if (first >= 0xE0 && first < 0xF0) length = 3;
    else if (first >= 0xF0 && first < 0xF5) length = 4;
    if (length == 0 || length > left) return 0;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    for (uint32_t i = 1; i < length; i++, low = 0x80, high = 0xBF) if (at[i] < low || at[i] > high) return 0;
    return length;
}

static int json_hex(json *j, uint32_t *value) {
    if (j->size - j->position < 4) return json_fail(j, "an incomplete \\u escape");
    *value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = j->bytes[j->position++];
        unsigned digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 16;
        if (digit == 16) return json_fail(j, "a \\u escape without four hexadecimal digits");
        *value = *value << 4 | digit;
    }
    return 0;
}

static int json_escape(json *j, uint32_t *to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    int c = json_peek(j);
    j->position++;
    const char *known = c > 0 ? strchr(from, c) : NULL;
    if (known) return j->bytes[(*to)++] = (unsigned char)into[known - from], 0;
    if (c != 'u') return json_fail(j, "an unknown escape");
    uint32_t value, low;
    if (json_hex(j, &value)) return -1;
    if (value >= 0xD800 && value < 0xE000) {
        if (value >= 0xDC00 || j->size - j->position < 2 || j->bytes[j->position] != '\\' || j->bytes[j->position + 1] != 'u')
            return json_fail(j, "unpaired surrogate");
        j->position += 2;
        if (json_hex(j, &low)) return -1;
        if (low < 0xDC00 || low >= 0xE000) return json_fail(j, "unpaired surrogate");
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
    unsigned char *out = j->bytes + *to;
    if (value < 0x80) out[0] = (unsigned char)value, *to += 1;
    else if (value < 0x800) out[0] = (unsigned char)(0xC0 | value >> 6), out[1] = (unsigned char)(0x80 | (value & 63)), *to += 2;
    else if (value < 0x10000) {
        out[0] = (unsigned char)(0xE0 | value >> 12), out[1] = (unsigned char)(0x80 | (value >> 6 & 63));
        out[2] = (unsigned char)(0x80 | (value & 63)), *to += 3;
    } else {
        out[0] = (unsigned char)(0xF0 | value >> 18), out[1] = (unsigned char)(0x80 | (value >> 12 & 63));
        out[2] = (unsigned char)(0x80 | (value >> 6 & 63)), out[3] = (unsigned char)(0x80 | (value & 63)), *to += 4;
    }
    return 0;
}

static int json_string(json *j) {
    if (json_add(j, J_STRING)) return -1;
    uint32_t start = ++j->position, to = start;
    for (;;) {
        int c = json_peek(j);
        if (c < 0) return json_fail(j, "an unterminated string");
        if (c < 0x20) return json_fail(j, "a control character in a string");
        if (c == '"') break;
        if (c == '\\') {
            j->position++;
            if (json_escape(j, &to)) return -1;
            continue;
        }
        uint32_t length = utf8_length(j->bytes + j->position, j->size - j->position);
        if (!length) return json_fail(j, "text that is not valid UTF-8");
        memmove(j->bytes + to, j->bytes + j->position, length);
        to += length, j->position += length;
    }
    j->position++;
    j->nodes[j->count - 1].start = start, j->nodes[j->count - 1].length = to - start;
    return 0;
}

static int json_digits(json *j) {
    uint32_t start = j->position;
    while (json_peek(j) >= '0' && json_peek(j) <= '9') j->position++;
    return j->position > start ? 0 : json_fail(j, "a number without digits");
}

static int json_number(json *j) {
    uint32_t start = j->position;
    if (json_add(j, J_NUMBER)) return -1;
    if (json_peek(j) == '-') j->position++;
    if (json_peek(j) == '0') j->position++;
    else if (json_digits(j)) return -1;
    if (json_peek(j) == '.' && (j->position++, json_digits(j))) return -1;
    if (json_peek(j) == 'e' || json_peek(j) == 'E') {
        j->position++;
        if (json_peek(j) == '+' || json_peek(j) == '-') j->position++;
        if (json_digits(j)) return -1;
    }
    j->nodes[j->count - 1].start = start, j->nodes[j->count - 1].length = j->position - start;
    return 0;
}

static int json_word(json *j, const char *word, json_type type) {
    size_t length = strlen(word);
    if (j->size - j->position < length || memcmp(j->bytes + j->position, word, length)) return json_fail(j, "an unknown word");
    j->position += (uint32_t)length;
    return json_add(j, type);
}

typedef struct { const unsigned char *text; uint32_t length; } json_key;

static int compare_keys(const void *left, const void *right) {
    const json_key *a = (const json_key *)left, *b = (const json_key *)right;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* Refuses an object with a duplicate member, because JSON parsers differ in which of the two they use. */
static int json_distinct(json *j, uint32_t object, uint32_t members) {
    if (members < 2) return 0;
    json_key *keys = (json_key *)malloc(members * sizeof *keys);
    if (!keys) return j->no_memory = 1, json_fail(j, "out of memory");
    uint32_t count = 0;
    int twice = 0;
    for (uint32_t key = object + 1; key < j->count; key = j->nodes[key + 1].end) {
        keys[count].text = j->bytes + j->nodes[key].start;
        keys[count++].length = j->nodes[key].length;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (uint32_t i = 1; i < count; i++) twice |= !compare_keys(&keys[i - 1], &keys[i]);
    free(keys);
    return twice ? json_fail(j, "an object with two members of the same name") : 0;
}

static int json_value(json *j);

static int json_list(json *j, json_type type) {
    uint32_t index = j->count, members = 0;
    int end = type == J_OBJECT ? '}' : ']';
    if (j->depth == MOST_DEPTH) return json_fail(j, "more than 64 levels of nesting");
    if (json_add(j, type)) return -1;
    j->depth++, j->position++;
    for (;; members++) {
        if (json_space(j)) return -1;
        if (json_peek(j) == end && (members == 0 || j->draft)) break;
        if (type == J_OBJECT) {
            if (json_peek(j) != '"') return json_fail(j, "a member without a name in double quotes");
            if (json_string(j) || json_space(j)) return -1;
            if (json_peek(j) != ':') return json_fail(j, "a member without a ':'");
            j->position++;
            if (json_space(j)) return -1;
        }
        if (json_value(j) || json_space(j)) return -1;
        if (json_peek(j) == end) {
            members++;
            break;
        }
        if (json_peek(j) != ',') return json_fail(j, "a missing ',' or closing bracket");
        j->position++;
    }
    j->depth--, j->position++;
    j->nodes[index].end = j->count;
    return type == J_OBJECT ? json_distinct(j, index, members) : 0;
}

static int json_value(json *j) {
    int c = json_peek(j);
    switch (c) {
    case '{': return json_list(j, J_OBJECT);
    case '[': return json_list(j, J_ARRAY);
    case '"': return json_string(j);
    case 't': return json_word(j, "true", J_TRUE);
    case 'f': return json_word(j, "false", J_FALSE);
    case 'n': return json_word(j, "null", J_NULL);
    default: return c == '-' || (c >= '0' && c <= '9') ? json_number(j) : json_fail(j, "a missing value");
    }
}

static int json_document(json *j) {
    if (j->size >= 3 && !memcmp(j->bytes, "\xEF\xBB\xBF", 3)) j->position = 3;
    if (json_space(j) || json_value(j) || json_space(j)) return -1;
    if (j->position < j->size) return json_fail(j, "text after the end");
    return j->nodes[0].type == J_OBJECT ? 0 : json_fail(j, "a value that is not an object");
}

/* Returns the member of an object with this name; NULL if the object does not have it. */
static const json_node *json_get(const json *j, const json_node *object, const char *name) {
    size_t length = strlen(name);
    if (!object || object->type != J_OBJECT) return NULL;
    const json_node *end = j->nodes + object->end;
    for (const json_node *key = object + 1; key < end; key = j->nodes + key[1].end)
        if (key->length == length && !memcmp(j->bytes + key->start, name, length)) return key + 1;
    return NULL;
}

static int json_is(const json *j, const json_node *node, json_type type, const char *text) {
    return node && node->type == type && node->length == strlen(text) && !memcmp(j->bytes + node->start, text, node->length);
}

/* --- files of the store */

/* Reads a record of the store as JSON. A damaged record is EBADMSG, a missing record is ENOENT. */
static int read_json(int directory, const char *name, int follow, int draft, json *j, moult_error *error) {
    struct stat facts;
    memset(j, 0, sizeof *j);
    j->line = 1, j->draft = draft;
    /* O_NONBLOCK, because opening a FIFO would wait for a writer. */
    int file = openat(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
    if (file < 0) return because(error, errno), -1;
    if (fstat(file, &facts)) return because(error, errno), close(file), -1;
    error->code = EBADMSG;
    if (!S_ISREG(facts.st_mode)) return WHY(error, "it is not a regular file"), close(file), -1;
    if (facts.st_size > MOST_BYTES) return WHY(error, "it is larger than %d bytes", MOST_BYTES), close(file), -1;
    /* Reads up to one byte more than the size, to detect that the file grew after fstat. */
    uint32_t capacity = (uint32_t)facts.st_size + 1;
    j->bytes = (unsigned char *)malloc(capacity);
    if (!j->bytes) return because(error, ENOMEM), close(file), -1;
    while (j->size < capacity) {
        ssize_t count = read(file, j->bytes + j->size, capacity - j->size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return because(error, errno), close(file), -1;
        if (count == 0) break;
        j->size += (uint32_t)count;
    }
    close(file);
    if (j->size == capacity) return WHY(error, "it grew while it was read"), -1;
    if (!json_document(j)) return 0;
    if (j->no_memory) return because(error, ENOMEM), -1;
    WHY(error, "line %u, column %u: %s", j->line, j->position - j->line_start + 1, j->fault);
    return -1;
}

static void json_free(json *j) {
    free(j->bytes);
    free(j->nodes);
}

struct moult_lease {
    char *store, *generation, *product, *version;
    /* The last announcement when the lease was taken; empty if there was none. */
    char *announced;
    /* The read lock on the lease file; -1 in a store that only older versions have written to. */
    int lock;
    /* The directory of the release, with the lock that older versions look for, unless another process has locked it. */
    int directory;
    moult_database *databases;
    size_t count;
};

/* Returns whether a text can be the name of a generation: a version, '+' and a digest. */
static int is_generation(const char *name) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-.";
    return strspn(name, allowed) == strlen(name) && strchr(name, '+') && name[0] != '.' && !strstr(name, "..");
}

static int damaged_pointer(moult_error *error, const char *store, const char *why) {
    char shell[2 * PATH_MAX];
    error->code = EBADMSG;
    WHAT(error, "%s/.moult/current cannot be used", store);
    WHY(error, "%s", why);
    NEXT(error, "Repair it with: moult recover --store %s", quoted(store, shell, sizeof shell));
    return -1;
}

/* Reports why the link `current` is missing: the directory is not a store, or the store has no release. */
static int no_pointer(moult_error *error, const char *store) {
    char path[PATH_MAX], shell[2 * PATH_MAX];
    struct stat facts;
    const char *argument = quoted(store, shell, sizeof shell);
    int length = snprintf(path, sizeof path, "%s/moult.json", store);
    if (length >= (int)sizeof path || lstat(path, &facts)) {
        error->code = ENOENT;
        WHAT(error, "%s is not a moult store", store);
        WHY(error, "it has no moult.json");
        NEXT(error, "Create a store with: moult init %s --product NAME", argument);
        return -1;
    }
    error->code = ENODATA;
    WHAT(error, "no release is installed in %s", store);
    WHY(error, "%s/.moult/current does not exist", store);
    NEXT(error, "Install a release with: moult apply --store %s MANIFEST (if one was installed before: moult recover --store %s)",
         argument, argument);
    return -1;
}

/* Reads the link `current` into `name`. */
static int read_pointer(const char *store, char name[NAME_MAX + 1], moult_error *error) {
    static const char prefix[] = "generations/";
    char path[PATH_MAX], target[NAME_MAX + sizeof prefix + 1];
    if (snprintf(path, sizeof path, "%s/.moult/current", store) >= (int)sizeof path) {
        WHAT(error, "cannot read the store %s", store);
        return because(error, ENAMETOOLONG), -1;
    }
    ssize_t length = readlink(path, target, sizeof target);
    if (length < 0 && errno == ENOENT) return no_pointer(error, store);
    if (length < 0 && errno == EINVAL) return damaged_pointer(error, store, "it is not a symbolic link");
    if (length < 0) {
        int code = errno;
        WHAT(error, "cannot read %s", path);
        return because(error, code), -1;
    }
    size_t skip = sizeof prefix - 1, size = (size_t)length - skip;
    if ((size_t)length <= skip || size > NAME_MAX || memcmp(target, prefix, skip) || memchr(target, 0, (size_t)length))
        return damaged_pointer(error, store, "it does not point to a generation of this store");
    memcpy(name, target + skip, size);
    name[size] = 0;
    return is_generation(name) ? 0 : damaged_pointer(error, store, "it does not point to a generation of this store");
}

/* Reads the line with the generation and the transaction that the store announced last; empty without a valid line. */
static int read_announced(const char *store, char line[MOST_LINE], moult_error *error) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
    char path[PATH_MAX], shell[2 * PATH_MAX];
    struct stat facts;
    line[0] = 0;
    WHAT(error, "cannot read the store %s", store);
    if (snprintf(path, sizeof path, "%s/.moult/announced", store) >= (int)sizeof path) return because(error, ENAMETOOLONG), -1;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    /* It is missing before the first announcement, or something else is in its place. */
    if (file < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO || errno == ENOTDIR)) return 0;
    if (file < 0) {
        int code = errno;
        WHAT(error, "cannot read %s", path);
        if (code == EACCES) NEXT(error, "Let the user read it: chmod a+r %s", quoted(path, shell, sizeof shell));
        return because(error, code), -1;
    }
    ssize_t length = 0;
    if (!fstat(file, &facts) && S_ISREG(facts.st_mode))
        while ((length = read(file, line, MOST_LINE - 1)) < 0 && errno == EINTR) {}
    int code = errno;
    close(file);
    if (length < 0) return because(error, code), -1;
    line[length] = 0;
    char *space = strchr(line, ' ');
    size_t known = space ? strspn(space + 1, allowed) : 0;
    int is_whole = known && !strcmp(space + 1 + known, "\n") && space + 2 + known == line + length;
    if (space) *space = 0;
    if (is_whole && is_generation(line)) *space = ' ';
    else line[0] = 0;
    return 0;
}

/* --- leases */

typedef enum { TAKEN, BLOCKED, FAILED } attempt;

/* Returns whether the file system or this user cannot use a lease file. Then the lock on the directory is the
 * lease. */
static int is_impossible(int code) {
    static const int codes[] = {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP, ENXIO};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) if (codes[i] == code) return 1;
    return 0;
}

/* Takes a read lock on the lease file. Returns -1 with errno on failure, and 1 if the file was replaced in the meantime. */
static int lock_file(const char *path, int *lock) {
    struct flock whole;
    struct stat open_file, file;
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), code = 0;
    if (descriptor < 0) return -1;
    memset(&whole, 0, sizeof whole);
    whole.l_type = F_RDLCK, whole.l_whence = SEEK_SET;
    if (fstat(descriptor, &open_file)) code = errno;
    else if (!S_ISREG(open_file.st_mode)) code = EINVAL;
    else if (fcntl(descriptor, F_OFD_SETLK, &whole)) code = errno == EACCES ? EAGAIN : errno;
    else if (lstat(path, &file)) code = errno == ENOENT ? -1 : errno;
    else if (file.st_dev != open_file.st_dev || file.st_ino != open_file.st_ino) code = -1;
    if (!code) return *lock = descriptor, 0;
    close(descriptor);
    return errno = code < 0 ? 0 : code, code < 0 ? 1 : -1;
}

/* Tries to lock a generation once; on failure the caller calls unlock. */
static attempt lock_generation(moult_lease *lease, moult_error *error) {
    char path[PATH_MAX];
    WHAT(error, "cannot take a lease on generation %s of %s", lease->generation, lease->store);
    if (snprintf(path, sizeof path, "%s/.moult/generations/%s", lease->store, lease->generation) >= (int)sizeof path)
        return because(error, ENAMETOOLONG), FAILED;
    lease->directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lease->directory < 0) {
        char shell[2 * PATH_MAX];
        int code = errno;
        because(error, code);
        if (code != ENOENT && code != ENOTDIR && code != ELOOP) return FAILED;
        error->code = EBADMSG;
        WHY(error, "the installed release is missing: %s is not a directory", path);
        int version = (int)(strrchr(lease->generation, '+') - lease->generation);
        NEXT(error, "Apply release %.*s again: moult apply --store %s MANIFEST", version, lease->generation,
             quoted(lease->store, shell, sizeof shell));
        return FAILED;
    }
    snprintf(path, sizeof path, "%s/.moult/leases/%s", lease->store, lease->generation);
    switch (lock_file(path, &lease->lock)) {
    case 1: return BLOCKED;
    case 0:
        /* Older versions look for this lock before they remove a generation. Any reader can block it, so it is not required. */
        (void)flock(lease->directory, LOCK_SH | LOCK_NB);
        return TAKEN;
    default: break;
    }
    if (errno == EAGAIN) return BLOCKED;
    if (!is_impossible(errno)) return because(error, errno), FAILED;
    if (!flock(lease->directory, LOCK_SH | LOCK_NB)) return TAKEN;
    if (errno == EWOULDBLOCK) return BLOCKED;
    return because(error, errno), FAILED;
}

static void unlock(moult_lease *lease) {
    /* No F_UNLCK or LOCK_UN, which would also end the lease of a child process created by fork. */
    if (lease->lock >= 0) close(lease->lock);
    if (lease->directory >= 0) close(lease->directory);
    lease->lock = lease->directory = -1;
}

static long long milliseconds(void) {
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) ? 0 : (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int take_lease(moult_lease *lease, moult_error *error) {
    char name[NAME_MAX + 1], again[NAME_MAX + 1], shell[2 * PATH_MAX];
    moult_error other;
    long long start = milliseconds();
    long pause = 1;
    for (int tries = 0; tries < MOST_ATTEMPTS;) {
        if (read_pointer(lease->store, name, error)) return -1;
        free(lease->generation);
        lease->generation = strdup(name);
        if (!lease->generation) return out_of_memory(error, lease->store);
        attempt result = lock_generation(lease, error);
        /* A lock is valid if its generation is still installed afterwards. If not, an update may have removed the files. */
        int same = !read_pointer(lease->store, again, &other) && !strcmp(name, again);
        if (same && result == TAKEN) return 0;
        unlock(lease);
        if (same && result == FAILED) return -1;
        if (!same) {
            tries++;
            continue;
        }
        if (milliseconds() - start >= PATIENCE_MILLISECONDS) break;
        struct timespec rest = {0, pause * 1000000};
        nanosleep(&rest, NULL);
        if (pause < 50) pause *= 2;
    }
    error->code = EBUSY;
    WHAT(error, "cannot take a lease on generation %s of %s", lease->generation ? lease->generation : "", lease->store);
    WHY(error, "another process has locked it");
    NEXT(error, "List the processes with: moult status --processes --store %s", quoted(lease->store, shell, sizeof shell));
    return -1;
}

static int keep_announced(moult_lease *lease, moult_error *error) {
    char line[MOST_LINE];
    if (read_announced(lease->store, line, error)) return -1;
    lease->announced = strdup(line);
    return lease->announced ? 0 : out_of_memory(error, lease->store);
}

/* --- the manifest */

static int is_alphanumeric(int c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/* Returns why a node is not a string of at most `longest` letters, digits and characters in `extra`; NULL if it is. */
static const char *fault_of(const json *j, const json_node *node, const char *extra, size_t longest) {
    if (!node) return "is missing";
    if (node->type != J_STRING) return "is not a string";
    if (!node->length) return "is empty";
    if (node->length > longest) return "is too long";
    for (uint32_t i = 0; i < node->length; i++) {
        int c = j->bytes[node->start + i];
        if (!c || (!is_alphanumeric(c) && !strchr(extra, c))) return "has a character that is not allowed";
    }
    return NULL;
}

/* Returns a copy of such a string; otherwise NULL and `error`. */
static char *plain(const json *j, const json_node *node, const char *field, const char *extra, size_t longest, moult_error *error) {
    const char *fault = fault_of(j, node, extra, longest);
    if (fault) {
        error->code = EBADMSG;
        WHY(error, "%s %s", field, fault);
        return NULL;
    }
    char *copy = strndup((const char *)j->bytes + node->start, node->length);
    if (!copy) because(error, ENOMEM);
    return copy;
}

static int ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), part = strlen(ending);
    return length >= part && !strcasecmp(text + length - part, ending);
}

/* Returns the name of a database file, which must not lead out of its directory in the store, or name another kind of
 * file. */
static char *file_name(const json *j, const json_node *database, const char *field, moult_error *error) {
    /* In an archive that another tool packed, a member may be in a directory; the generation has only the file name. */
    char *path = plain(j, json_get(j, database, field), field, strcmp(field, "member") ? "._-" : "._-/", 8 * 256, error);
    if (!path) return NULL;
    char *slash = strrchr(path, '/');
    if (slash) memmove(path, slash + 1, strlen(slash));
    int is_sqlites = ends_with(path, "-wal") || ends_with(path, "-shm") || ends_with(path, "-journal");
    int is_moults = !strcasecmp(path, "moult.json") || !strcasecmp(path, "manifest.json") || !strcasecmp(path, "seal.json");
    if (!*path || *path == '.' || *path == '-' || strlen(path) > MOST_NAME || is_sqlites || is_moults) {
        error->code = EBADMSG;
        WHY(error, "%s is not the name of a database file", field);
        free(path);
        return NULL;
    }
    return path;
}

/* Returns the path of a file as a `file:` URI for SQLite. */
static char *uri_of(const char *path, const char *parameters) {
    static const char digits[] = "0123456789ABCDEF";
    char *uri = (char *)malloc(3 * strlen(path) + strlen(parameters) + 16), *to = uri;
    if (!uri) return NULL;
    to += sprintf(to, "file://");
    for (const unsigned char *from = (const unsigned char *)path; *from; from++) {
        if (is_alphanumeric(*from) || strchr("-._~/", *from)) *to++ = (char)*from;
        else *to++ = '%', *to++ = digits[*from >> 4], *to++ = digits[*from & 15];
    }
    strcpy(to, parameters);
    return uri;
}

/* Returns the path of a writable database. */
static char *writable_path(const moult_lease *lease, const char *kind, const char *file, const char *cache_root) {
    if (cache_root && !strcmp(kind, "cache")) return text_of("%s/%s", cache_root, file);
    return text_of("%s/%s", !strcmp(lease->store, "/") ? "" : lease->store, file);
}

static const char *known_kind(const json *j, const json_node *node) {
    static const char *const kinds[] = {"reference", "shared", "user", "cache"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) if (json_is(j, node, J_STRING, kinds[i])) return kinds[i];
    return NULL;
}

static int read_database(const moult_lease *lease, const json *j, const json_node *key, const char *cache_root,
                         moult_database *to, moult_error *error) {
    const json_node *part = key + 1, *attach = json_get(j, part, "attach");
    const json_node *alias = json_get(j, attach, "as"), *group = json_get(j, attach, "group");
    char *name = plain(j, key, "the name of a database", "_-", 64, error), *file = NULL;
    if (!name) return -1;
    to->name = name;
    to->kind = known_kind(j, json_get(j, part, "kind"));
    if (!to->kind) {
        error->code = EPROTO;
        WHY(error, "database %s has a kind that this library does not know", name);
        NEXT(error, "Install a newer libmoult-reader.");
        return -1;
    }
    to->writable = strcmp(to->kind, "reference") != 0;
    if (group && !(to->group = plain(j, group, "attach.group", "_-", 64, error))) return -1;
    if (!(to->schema = plain(j, alias ? alias : key, "attach.as", "_-", 64, error))) return -1;
    file = file_name(j, part, to->writable && json_get(j, part, "path") ? "path" : "member", error);
    if (!file) return -1;
    if (to->writable) to->path = writable_path(lease, to->kind, file, cache_root);
    else to->path = text_of("%s/.moult/generations/%s/%s", lease->store, lease->generation, file);
    free(file);
    if (to->path) to->uri = uri_of(to->path, to->writable ? "" : "?mode=ro&immutable=1");
    return to->uri ? 0 : (because(error, ENOMEM), -1);
}

static int compare_groups(const moult_database *one, const moult_database *other) {
    return strcmp(one->group ? one->group : "", other->group ? other->group : "");
}

/* Compares the connections of two databases, then their positions in the manifest. */
static int compare_positions(const void *left, const void *right) {
    const moult_database *one = *(moult_database *const *)left, *other = *(moult_database *const *)right;
    int order = compare_groups(one, other);
    return order ? order : (one > other) - (one < other);
}

/* Compares the connections of two databases, then their schema names as SQLite does, ignoring case. On one connection, they must
 * differ. */
static int compare_schemas(const void *left, const void *right) {
    const moult_database *one = *(moult_database *const *)left, *other = *(moult_database *const *)right;
    int order = compare_groups(one, other);
    return order ? order : strcasecmp(one->schema, other->schema);
}

/* Makes the first user database of each connection its main database. */
static int name_mains(moult_database **all, size_t count, moult_error *error) {
    qsort(all, count, sizeof *all, compare_positions);
    for (size_t i = 0, has_main = 0; i < count; i++) {
        if (i == 0 || compare_groups(all[i - 1], all[i])) has_main = 0;
        if (has_main || strcmp(all[i]->kind, "user")) continue;
        has_main = 1;
        char *schema = strdup("main");
        if (!schema) return because(error, ENOMEM), -1;
        free((void *)all[i]->schema);
        all[i]->schema = schema;
    }
    return 0;
}

static int check_schemas(const moult_lease *lease, moult_error *error) {
    moult_database **all = (moult_database **)malloc(lease->count * sizeof *all);
    if (!all) return because(error, ENOMEM), -1;
    for (size_t i = 0; i < lease->count; i++) all[i] = &lease->databases[i];
    if (name_mains(all, lease->count, error)) return free(all), -1;
    qsort(all, lease->count, sizeof *all, compare_schemas);
    const char *wrong = NULL;
    for (size_t i = 0; i < lease->count && !wrong; i++) {
        const char *name = all[i]->schema;
        int is_taken = i > 0 && !compare_schemas(&all[i - 1], &all[i]);
        int is_reserved = !strcasecmp(name, "temp") || (!strcasecmp(name, "main") && strcmp(all[i]->kind, "user"));
        if (is_taken || is_reserved) wrong = name;
    }
    if (wrong) {
        error->code = EBADMSG;
        WHY(error, "two databases cannot both be attached as %s", wrong);
    }
    free(all);
    return wrong ? -1 : 0;
}

/* Reads the directory of caches from the operator's settings; NULL if caches are in the store. */
static int read_cache_root(const moult_lease *lease, char **root, moult_error *error) {
    char path[PATH_MAX], shell[2 * PATH_MAX];
    json j;
    *root = NULL;
    if (snprintf(path, sizeof path, "%s/moult.json", lease->store) >= (int)sizeof path) return because(error, ENAMETOOLONG), -1;
    WHAT(error, "cannot read the settings %s", path);
    int failed = read_json(AT_FDCWD, path, 1, 1, &j, error);
    const json_node *node = failed ? NULL : json_get(&j, j.nodes, "cacheRoot");
    if (!failed && !json_is(&j, json_get(&j, j.nodes, "moult"), J_NUMBER, "1")) {
        failed = -1, error->code = EPROTO;
        WHY(error, "their format is not 1, the only one that this library reads");
        NEXT(error, "Install a newer libmoult-reader.");
    } else if (node) {
        uint32_t length = node->length;
        const unsigned char *text = j.bytes + node->start;
        if (node->type != J_STRING || length < 2 || text[0] != '/' || memchr(text, 0, length)) {
            failed = -1, error->code = EBADMSG;
            WHY(error, "cacheRoot is not an absolute path");
        } else {
            *root = strndup((const char *)text, text[length - 1] == '/' ? length - 1 : length);
            if (!*root) failed = -1, because(error, ENOMEM);
        }
    }
    if (failed && error->code == EBADMSG)
        NEXT(error, "Correct the file, then run: moult status --deep --store %s", quoted(lease->store, shell, sizeof shell));
    json_free(&j);
    return failed;
}

static int read_databases(moult_lease *lease, const json *j, moult_error *error) {
    const json_node *list = json_get(j, j->nodes, "databases");
    const json_node *end = list ? j->nodes + list->end : NULL;
    char *cache_root = NULL;
    size_t count = 0;
    int has_cache = 0, failed = 0;
    error->code = EBADMSG;
    if (!list || list->type != J_OBJECT || list + 1 == end) return WHY(error, "databases is missing or empty"), -1;
    for (const json_node *key = list + 1; key < end; key = j->nodes + key[1].end, count++)
        has_cache |= json_is(j, json_get(j, key + 1, "kind"), J_STRING, "cache");
    lease->databases = (moult_database *)calloc(count, sizeof *lease->databases);
    if (!lease->databases) return because(error, ENOMEM), -1;
    if (has_cache && read_cache_root(lease, &cache_root, error)) return -1;
    for (const json_node *key = list + 1; key < end && !failed; key = j->nodes + key[1].end)
        failed = read_database(lease, j, key, cache_root, &lease->databases[lease->count++], error);
    free(cache_root);
    return failed ? -1 : check_schemas(lease, error);
}

static int read_manifest(moult_lease *lease, moult_error *error) {
    char shell[2 * PATH_MAX];
    json j;
    WHAT(error, "cannot read the manifest of generation %s of %s", lease->generation, lease->store);
    int failed = read_json(lease->directory, "manifest.json", 0, 0, &j, error);
    if (failed && (error->code == ENOENT || error->code == ELOOP)) error->code = EBADMSG;
    if (!failed && !json_is(&j, json_get(&j, j.nodes, "manifest"), J_NUMBER, "1")) {
        failed = -1, error->code = EPROTO;
        WHY(error, "its format is not 1, the only one that this library reads");
        NEXT(error, "Install a newer libmoult-reader.");
    }
    if (!failed) lease->product = plain(&j, json_get(&j, j.nodes, "product"), "product", "._-", 255, error);
    if (lease->product) lease->version = plain(&j, json_get(&j, j.nodes, "version"), "version", ".+-", MOST_NAME, error);
    failed = failed || !lease->version || read_databases(lease, &j, error);
    if (failed && error->code == EBADMSG && !error->next[0])
        NEXT(error, "Apply the release again: moult apply --store %s MANIFEST", quoted(lease->store, shell, sizeof shell));
    json_free(&j);
    return failed ? -1 : 0;
}

/* --- the interface */

const char *moult_reader_version(void) { return MOULT_READER_VERSION; }

/* Returns the store's directory without symbolic links, which the caller frees; NULL and `error` if it does not exist. */
static char *directory_of(const char *store, moult_error *error) {
    char shell[2 * PATH_MAX];
    memset(error, 0, sizeof *error);
    WHAT(error, "cannot open the store %s", store ? store : "");
    if (!store || !*store) {
        error->code = EINVAL;
        WHY(error, "its path is empty");
        return NULL;
    }
    char *path = realpath(store, NULL);
    if (path) return path;
    because(error, errno);
    if (error->code == ENOENT) NEXT(error, "Create a store with: moult init %s --product NAME", quoted(store, shell, sizeof shell));
    return NULL;
}

moult_lease *moult_open(const char *store, moult_error *error) {
    moult_error unused;
    if (!error) error = &unused;
    char *path = directory_of(store, error);
    if (!path) return NULL;
    moult_lease *lease = (moult_lease *)calloc(1, sizeof *lease);
    if (!lease) return out_of_memory(error, store), free(path), (moult_lease *)NULL;
    lease->store = path;
    lease->lock = lease->directory = -1;
    /* The announcement is read after the lock, so that none is missed. */
    if (take_lease(lease, error) || keep_announced(lease, error) || read_manifest(lease, error))
        return moult_close(lease), (moult_lease *)NULL;
    memset(error, 0, sizeof *error);
    return lease;
}

void moult_close(moult_lease *lease) {
    if (!lease) return;
    unlock(lease);
    for (size_t i = 0; i < lease->count; i++) {
        const moult_database *one = &lease->databases[i];
        free((void *)one->name);
        free((void *)one->schema);
        free((void *)one->group);
        free((void *)one->path);
        free((void *)one->uri);
    }
    free(lease->databases);
    free(lease->store);
    free(lease->generation);
    free(lease->announced);
    free(lease->product);
    free(lease->version);
    free(lease);
}

const char *moult_store(const moult_lease *lease) { return lease->store; }
const char *moult_product(const moult_lease *lease) { return lease->product; }
const char *moult_version(const moult_lease *lease) { return lease->version; }
const char *moult_generation(const moult_lease *lease) { return lease->generation; }
size_t moult_database_count(const moult_lease *lease) { return lease->count; }

const moult_database *moult_database_at(const moult_lease *lease, size_t index) {
    return index < lease->count ? &lease->databases[index] : NULL;
}

const moult_database *moult_database_named(const moult_lease *lease, const char *name) {
    for (size_t i = 0; name && i < lease->count; i++) if (!strcmp(lease->databases[i].name, name)) return &lease->databases[i];
    return NULL;
}

int moult_switched(const moult_lease *lease, moult_error *error) {
    moult_error unused;
    char name[NAME_MAX + 1], line[MOST_LINE];
    if (!error) error = &unused;
    memset(error, 0, sizeof *error);
    if (read_pointer(lease->store, name, error) || read_announced(lease->store, line, error)) return -1;
    memset(error, 0, sizeof *error);
    char *space = strchr(line, ' ');
    if (!space) return 0;
    if (strcmp(line, lease->announced)) return 1;
    /* An update may have been undone since, or have ended while the lease was taken. */
    *space = 0;
    return strcmp(line, lease->generation) && !strcmp(line, name);
}

int moult_watch(const char *store, moult_error *error) {
    moult_error unused;
    char hidden[PATH_MAX];
    if (!error) error = &unused;
    char *path = directory_of(store, error);
    if (!path) return -1;
    int is_long = snprintf(hidden, sizeof hidden, "%s/.moult", path) >= (int)sizeof hidden;
    WHAT(error, "cannot watch the store %s", path);
    free(path);
    if (is_long) return because(error, ENAMETOOLONG), -1;
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0) {
        because(error, errno);
        if (error->code == EMFILE) NEXT(error, "Close unused watches, or raise fs.inotify.max_user_instances.");
        return -1;
    }
    /* IN_MOVED_TO reports a switch and an announcement; the other events report that the store itself was moved or removed. */
    if (inotify_add_watch(watch, hidden, IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) < 0) {
        because(error, errno);
        if (error->code == ENOSPC) NEXT(error, "Raise fs.inotify.max_user_watches.");
        close(watch);
        return -1;
    }
    memset(error, 0, sizeof *error);
    return watch;
}

/* --- changed rows */

/* Ends a string or number with a NUL: after parsing, the byte after it is not needed any more. */
static const char *json_text(json *j, const json_node *node) {
    j->bytes[node->start + node->length] = 0;
    return (const char *)j->bytes + node->start;
}

static int hex_digit(unsigned char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

/* Reads a value of a key: NULL, a number, a string, or an object with one member, such as {"blob": "00ff"}. */
static int read_value(json *j, const json_node *node, moult_value *value) {
    memset(value, 0, sizeof *value);
    if (node->type == J_NULL) return 0;
    const json_node *tag = node->type == J_OBJECT && node->end - (uint32_t)(node - j->nodes) == 3 ? node + 1 : NULL;
    if (node->type != J_NUMBER && node->type != J_STRING && (!tag || tag[1].type != J_STRING)) return -1;
    value->bytes = json_text(j, tag ? tag + 1 : node);
    value->size = tag ? tag[1].length : node->length;
    if (node->type == J_STRING) return value->type = MOULT_TEXT, 0;
    if (node->type == J_NUMBER) {
        value->type = strpbrk(value->bytes, ".eE") ? MOULT_REAL : MOULT_INTEGER;
        if (value->type == MOULT_INTEGER) value->integer = strtoll(value->bytes, NULL, 10);
        return 0;
    }
    if (json_is(j, tag, J_STRING, "real")) return value->type = MOULT_REAL, 0;
    value->type = json_is(j, tag, J_STRING, "blob") ? MOULT_BLOB : MOULT_TEXT;
    unsigned char *bytes = j->bytes + tag[1].start;
    if (value->size % 2 || strspn(value->bytes, "0123456789abcdef") != value->size) return -1;
    for (size_t i = 0; i < value->size / 2; i++) bytes[i] = (unsigned char)(hex_digit(bytes[2 * i]) << 4 | hex_digit(bytes[2 * i + 1]));
    bytes[value->size /= 2] = 0;
    return 0;
}

#define MOST_VALUES 64

static int read_keys(json *j, const json_node *keys, const char *database, const char *table, moult_change change, moult_row row, void *context) {
    moult_value values[MOST_VALUES];
    if (!keys || keys->type != J_ARRAY) return -1;
    for (const json_node *key = keys + 1, *end = j->nodes + keys->end; key < end; key = j->nodes + key->end) {
        size_t count = 0;
        if (key->type != J_ARRAY) return -1;
        for (const json_node *one = key + 1, *last = j->nodes + key->end; one < last; one = j->nodes + one->end)
            if (count == MOST_VALUES || read_value(j, one, &values[count++])) return -1;
        int result = row(context, database, table, change, values, count);
        if (result) return result;
    }
    return 0;
}

/* Passes on that something must be read again. Returns 1 if it need not. */
static int read_reload(json *j, const json_node *part, const char *database, const char *table, moult_row row, void *context) {
    moult_value why;
    const json_node *reload = json_get(j, part, "reload");
    if (!reload) return 1;
    if (read_value(j, reload, &why)) return -1;
    return row(context, database, table, MOULT_RELOAD, &why, 1);
}

static int read_changes(json *j, moult_row row, void *context) {
    static const char *const names[] = {"inserted", "updated", "deleted"};
    const json_node *changes = json_get(j, j->nodes, "changes");
    if (!changes || changes->type != J_ARRAY) return -1;
    for (const json_node *one = changes + 1, *end = j->nodes + changes->end; one < end; one = j->nodes + one->end) {
        const json_node *name = json_get(j, one, "name"), *tables = json_get(j, one, "tables");
        if (!name || name->type != J_STRING) return -1;
        const char *database = json_text(j, name);
        int result = read_reload(j, one, database, NULL, row, context);
        if (result != 1) {
            if (result) return result;
            continue;
        }
        if (!tables || tables->type != J_ARRAY) return -1;
        for (const json_node *table = tables + 1, *last = j->nodes + tables->end; table < last; table = j->nodes + table->end) {
            const json_node *title = json_get(j, table, "name");
            if (!title || title->type != J_STRING) return -1;
            const char *text = json_text(j, title);
            result = read_reload(j, table, database, text, row, context);
            for (int i = 0; result == 1 && i < 3; i++) {
                result = read_keys(j, json_get(j, table, names[i]), database, text, (moult_change)i, row, context);
                if (!result) result = 1;
            }
            if (result != 1 && result) return result;
        }
    }
    return 0;
}

int moult_rows(const char *line, size_t size, moult_row row, void *context, moult_error *error) {
    moult_error unused;
    json j;
    if (!error) error = &unused;
    memset(error, 0, sizeof *error);
    memset(&j, 0, sizeof j);
    WHAT(error, "the line of moult watch cannot be read");
    if (size > MOST_BYTES || !(j.bytes = (unsigned char *)malloc(size + 1))) return because(error, size > MOST_BYTES ? E2BIG : ENOMEM), -1;
    memcpy(j.bytes, line, size);
    j.size = (uint32_t)size, j.line = 1;
    int result = json_document(&j) ? -1 : read_changes(&j, row, context);
    json_free(&j);
    if (result == -1) error->code = j.no_memory ? ENOMEM : EBADMSG, WHY(error, "it is not an event with \"changes\"");
    return result;
}

void moult_watch_clear(int watch) {
    char events[4096];
    for (;;) {
        ssize_t count = read(watch, events, sizeof events);
        if (count == 0 || (count < 0 && errno != EINTR)) return;
    }
}
