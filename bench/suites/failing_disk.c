/* Preloaded into a server: file operations below FAULT_FOLDER fail, from the one with the number FAULT_AT on, FAULT_COUNT of them.
   A write that fails has written half of its bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long count;

static int fails(const char *path) {
    const char *folder = getenv("FAULT_FOLDER"), *at = getenv("FAULT_AT");
    if (!folder || !at || strncmp(path, folder, strlen(folder)) != 0) return 0;
    long number = atomic_fetch_add(&count, 1) + 1 - atol(at);
    if (number < 0 || number >= atol(getenv("FAULT_COUNT"))) return 0;
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}

static int file_fails(int file) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    int kept = errno;
    ssize_t length = readlink(name, path, sizeof path - 1);
    errno = kept;
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define NEXT(name) static __typeof__(&name) next; if (!next) next = dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size) {
    NEXT(write);
    if (!file_fails(file)) return next(file, data, size);
    int found = errno;
    if (size > 1) next(file, data, size / 2);
    errno = found;
    return -1;
}

int fsync(int file) {
    NEXT(fsync);
    return file_fails(file) ? -1 : next(file);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return fails(to) ? -1 : next(from, to);
}

int link(const char *from, const char *to) {
    NEXT(link);
    return fails(to) ? -1 : next(from, to);
}

int ftruncate(int file, off_t size) {
    NEXT(ftruncate);
    return file_fails(file) ? -1 : next(file, size);
}
