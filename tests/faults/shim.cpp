// Loaded before libc: lets one call of a kind fail, or kills the process there, for files below one folder.
//
// What is seen: calls that go through the symbols below. A FILE* writes inside libc, past them, and a memory map reads
// without a call.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace {

enum Kind { LOOK, OPEN, READ, WRITE, FSYNC, CLOSE, RENAME, MKDIR, UNLINK, FTRUNCATE, FLOCK, KINDS };
enum How { COUNT, ONCE, ALWAYS, KILL };

char folder[4096];
size_t folder_length = 0;
Kind kind = LOOK;
How how = COUNT;
long at = 0;
int number = 0;
std::atomic<long> calls[KINDS];

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_below(const char* path) {
  return path != nullptr && folder_length > 0 && strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/';
}

bool is_below(int descriptor) {
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  const ssize_t n = readlink(name, path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  return is_below(path);
}

bool is_below(int place, const char* path) {
  if (path == nullptr || path[0] == '/' || place == AT_FDCWD) return is_below(path);
  return is_below(place);
}

// Whether this call is to fail; `errno` is set if so.
bool fails(Kind of, bool below) {
  if (!below) return false;
  const long n = ++calls[of];
  if (how == COUNT || of != kind || (how == ALWAYS ? n < at : n != at)) return false;
  if (how == KILL) kill(getpid(), SIGKILL);
  errno = number;
  return true;
}

Kind kind_of(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0 ? OPEN : LOOK; }

}  // namespace

extern "C" {

void shim_arm(const char* below, int wanted, int manner, long call, int error) {
  for (auto& n : calls) n = 0;
  kind = static_cast<Kind>(wanted);
  how = static_cast<How>(manner);
  at = call;
  number = error;
  snprintf(folder, sizeof folder, "%s", below);
  folder_length = strlen(folder);
}

void shim_disarm() { folder_length = 0; }

long shim_calls(int of) { return calls[of]; }

#define OPEN_CALL(name)                                                             \
  int name(const char* path, int flags, ...) {                                      \
    va_list more;                                                                   \
    va_start(more, flags);                                                          \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                   \
    if (fails(kind_of(flags), is_below(path))) return -1;                           \
    return real<int (*)(const char*, int, ...)>(#name)(path, flags, mode);          \
  }

#define OPENAT_CALL(name)                                                                  \
  int name(int place, const char* path, int flags, ...) {                                  \
    va_list more;                                                                          \
    va_start(more, flags);                                                                 \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;        \
    va_end(more);                                                                          \
    if (fails(kind_of(flags), is_below(place, path))) return -1;                           \
    return real<int (*)(int, const char*, int, ...)>(#name)(place, path, flags, mode);     \
  }

#define CALL(kind, result, name, below, types, ...) \
  result name types {                               \
    if (fails(kind, is_below below)) return -1;     \
    return real<result(*) types>(#name)(__VA_ARGS__); \
  }

OPEN_CALL(open)
OPEN_CALL(open64)
OPENAT_CALL(openat)
OPENAT_CALL(openat64)
CALL(READ, ssize_t, read, (fd), (int fd, void* to, size_t n), fd, to, n)
CALL(READ, ssize_t, pread, (fd), (int fd, void* to, size_t n, off_t from), fd, to, n, from)
CALL(READ, ssize_t, pread64, (fd), (int fd, void* to, size_t n, off64_t from), fd, to, n, from)
CALL(WRITE, ssize_t, write, (fd), (int fd, const void* data, size_t n), fd, data, n)
CALL(WRITE, ssize_t, pwrite, (fd), (int fd, const void* data, size_t n, off_t from), fd, data, n, from)
CALL(WRITE, ssize_t, pwrite64, (fd), (int fd, const void* data, size_t n, off64_t from), fd, data, n, from)
CALL(RENAME, int, rename, (to), (const char* from, const char* to), from, to)
CALL(RENAME, int, renameat, (there, to), (int here, const char* from, int there, const char* to), here, from, there, to)
CALL(MKDIR, int, mkdir, (path), (const char* path, mode_t mode), path, mode)
CALL(MKDIR, int, mkdirat, (place, path), (int place, const char* path, mode_t mode), place, path, mode)
CALL(UNLINK, int, unlink, (path), (const char* path), path)
CALL(UNLINK, int, unlinkat, (place, path), (int place, const char* path, int flags), place, path, flags)
CALL(UNLINK, int, rmdir, (path), (const char* path), path)
CALL(FTRUNCATE, int, ftruncate, (fd), (int fd, off_t length), fd, length)
CALL(FTRUNCATE, int, ftruncate64, (fd), (int fd, off64_t length), fd, length)
CALL(FLOCK, int, flock, (fd), (int fd, int operation), fd, operation)

// Nobody loses power, and a disk takes milliseconds.
int fsync(int fd) { return fails(FSYNC, is_below(fd)) ? -1 : 0; }
int fdatasync(int fd) { return fails(FSYNC, is_below(fd)) ? -1 : 0; }

int close(int fd) {  // the descriptor is gone, whatever is said
  const bool failed = fails(CLOSE, is_below(fd));
  const int error = errno;
  const int result = real<int (*)(int)>("close")(fd);
  if (!failed) return result;
  errno = error;
  return -1;
}

}  // extern "C"
