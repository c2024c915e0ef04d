/* A process that is started with this library sees a wall clock that is off by as many nanoseconds as the
   first eight bytes of the file $CLOCK_SHIFT_FILE say (a signed number of this machine's byte order), at any
   time: calls that tell the time, deadlines by the wall clock, and the times of files that were written since
   it was set so, which the next eight bytes say (nanoseconds of the Unix epoch). The monotonic clock stays.

   Threads share aligned loads of mapped bytes. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile int64_t *shift_file;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (mapped != MAP_FAILED) shift_file = mapped;
}

static int64_t shift_ns(void) { return shift_file ? shift_file[0] : 0; }
static int64_t since_ns(void) { return shift_file ? shift_file[1] : 0; }

static void move(struct timespec *time, int64_t by_ns) {
    int64_t ns = (int64_t)time->tv_sec * SECOND + time->tv_nsec + by_ns;
    time->tv_sec = ns / SECOND;
    time->tv_nsec = ns % SECOND;
    if (time->tv_nsec < 0) {
        time->tv_nsec += SECOND;
        time->tv_sec -= 1;
    }
}

static struct timespec real(const struct timespec *deadline) {
    struct timespec moved = *deadline;
    move(&moved, -shift_ns());
    return moved;
}

static void move_if_since(struct timespec *time) {
    if ((int64_t)time->tv_sec * SECOND + time->tv_nsec >= since_ns()) move(time, shift_ns());
}

#define NEXT(name) ((__typeof__(&name))next(#name))
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* --- what time it is: by the system call, since dlsym may itself ask --- */

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) move(time, shift_ns());
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *time, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

/* --- deadlines by the wall clock --- */

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
    static __typeof__(&pthread_cond_timedwait) theirs;
    if (!theirs) theirs = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!theirs) theirs = NEXT(pthread_cond_timedwait);
    /* Conditions that were made for the monotonic clock come here as well: their deadlines are small. */
    struct timespec moved = deadline->tv_sec < SECOND ? *deadline : real(deadline);
    return theirs(condition, mutex, &moved);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict deadline) {
    struct timespec moved = real(deadline);
    return NEXT(cnd_timedwait)(condition, mutex, &moved);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline) {
    struct timespec moved = real(deadline);
    return NEXT(sem_timedwait)(semaphore, &moved);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict deadline) {
    struct timespec moved = real(deadline);
    return NEXT(pthread_mutex_timedlock)(mutex, &moved);
}

/* --- files' times --- */

#define MOVED(name, kind, declared, passed)                        \
    int name declared {                                            \
        int result = NEXT(name) passed;                            \
        if (result == 0) {                                         \
            move_if_since(&found->st_atim);                        \
            move_if_since(&found->st_mtim);                        \
            move_if_since(&found->st_ctim);                        \
        }                                                          \
        return result;                                             \
    }

MOVED(stat, stat, (const char *restrict path, struct stat *restrict found), (path, found))
MOVED(lstat, stat, (const char *restrict path, struct stat *restrict found), (path, found))
MOVED(fstat, stat, (int file, struct stat *found), (file, found))
MOVED(fstatat, stat, (int folder, const char *restrict path, struct stat *restrict found, int flags),
      (folder, path, found, flags))
MOVED(stat64, stat64, (const char *restrict path, struct stat64 *restrict found), (path, found))
MOVED(lstat64, stat64, (const char *restrict path, struct stat64 *restrict found), (path, found))
MOVED(fstat64, stat64, (int file, struct stat64 *found), (file, found))
MOVED(fstatat64, stat64, (int folder, const char *restrict path, struct stat64 *restrict found, int flags),
      (folder, path, found, flags))
