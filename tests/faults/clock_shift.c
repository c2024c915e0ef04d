/* A process that is started with this library sees a wall clock that is off by what the file $CLOCK_SHIFT_FILE
   says, at any time: calls that tell the time, deadlines by the wall clock, and the times of files. The
   monotonic clock stays.

   The file is of 64-bit numbers of this machine's byte order: how many entries there are; whether files keep
   this machine's clock (not 0), as those of a file server do; and the entries, each a time by this machine's
   clock (nanoseconds of the Unix epoch) and by how much the clock is off from then on (signed). A file is as
   old as the clock that was in force when it was written; before the first entry that was this machine's.

   Threads share aligned loads of mapped bytes: an entry is there before it is counted. */

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
#include <utime.h>

#define SECOND 1000000000LL
#define ENTRIES_MAX 255

struct entry {
    int64_t since_ns;
    int64_t by_ns;
};

struct history {
    int64_t count;
    int64_t files_apart;
    struct entry entries[ENTRIES_MAX];
};

static const volatile struct history *history;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct history), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (mapped != MAP_FAILED) history = mapped;
}

static int64_t count(void) {
    int64_t known = history ? history->count : 0;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return known;
}

static int64_t shift_ns(void) {
    int64_t known = count();
    return known ? history->entries[known - 1].by_ns : 0;
}

static int64_t ns_of(const struct timespec *time) { return (int64_t)time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec time_of(int64_t ns) {
    int64_t rest = ns % SECOND < 0 ? ns % SECOND + SECOND : ns % SECOND;
    return (struct timespec){.tv_sec = (ns - rest) / SECOND, .tv_nsec = rest};
}

static struct timespec real(const struct timespec *deadline) {
    return time_of(ns_of(deadline) - shift_ns());
}

/* What this process is told of a file that was written at this time, by this machine's clock. */
static int64_t told_ns(int64_t written_ns) {
    for (int64_t known = count(); !(history && history->files_apart) && known > 0; known--) {
        if (written_ns >= history->entries[known - 1].since_ns) {
            return written_ns + history->entries[known - 1].by_ns;
        }
    }
    return written_ns;
}

/* What to write so that this time is told. Of several the latest; of a time that was left out, the moment of
   the leap. */
static int64_t written_ns(int64_t told) {
    for (int64_t known = count(); !(history && history->files_apart) && known > 0; known--) {
        const volatile struct entry *one = &history->entries[known - 1];
        int64_t before_ns = known > 1 ? one[-1].by_ns : 0;
        if (told - one->by_ns >= one->since_ns) return told - one->by_ns;
        if (told - before_ns >= one->since_ns) return one->since_ns;
    }
    return told;
}

#define NEXT(name) ((__typeof__(&name))next(#name))
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* --- what time it is: by the system call, since dlsym may itself ask --- */

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) *time = time_of(ns_of(time) + shift_ns());
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

/* --- the times of files that are asked for: by today's names, and by those that libraries have which were
   built before glibc 2.33 --- */

static void tell(struct timespec *time) { *time = time_of(told_ns(ns_of(time))); }

#define TOLD(name, declared, passed)   \
    int name declared {                \
        int result = NEXT(name) passed; \
        if (result == 0) {             \
            tell(&found->st_atim);     \
            tell(&found->st_mtim);     \
            tell(&found->st_ctim);     \
        }                              \
        return result;                 \
    }

#define ALL_TOLD(stat, lstat, fstat, fstatat, kind)                                                      \
    TOLD(stat, (const char *restrict path, struct kind *restrict found), (path, found))                  \
    TOLD(lstat, (const char *restrict path, struct kind *restrict found), (path, found))                 \
    TOLD(fstat, (int file, struct kind *found), (file, found))                                           \
    TOLD(fstatat, (int folder, const char *restrict path, struct kind *restrict found, int flags),       \
         (folder, path, found, flags))

ALL_TOLD(stat, lstat, fstat, fstatat, stat)
ALL_TOLD(stat64, lstat64, fstat64, fstatat64, stat64)

#define OLD_TOLD(xstat, lxstat, fxstat, fxstatat, kind)                                                  \
    int xstat(int, const char *, struct kind *);                                                         \
    int lxstat(int, const char *, struct kind *);                                                        \
    int fxstat(int, int, struct kind *);                                                                 \
    int fxstatat(int, int, const char *, struct kind *, int);                                            \
    TOLD(xstat, (int version, const char *path, struct kind *found), (version, path, found))             \
    TOLD(lxstat, (int version, const char *path, struct kind *found), (version, path, found))            \
    TOLD(fxstat, (int version, int file, struct kind *found), (version, file, found))                    \
    TOLD(fxstatat, (int version, int folder, const char *path, struct kind *found, int flags),           \
         (version, folder, path, found, flags))

OLD_TOLD(__xstat, __lxstat, __fxstat, __fxstatat, stat)
OLD_TOLD(__xstat64, __lxstat64, __fxstat64, __fxstatat64, stat64)

static void tell_x(struct statx_timestamp *time) {
    struct timespec told = time_of(told_ns((int64_t)time->tv_sec * SECOND + time->tv_nsec));
    time->tv_sec = told.tv_sec;
    time->tv_nsec = told.tv_nsec;
}

int statx(int folder, const char *restrict path, int flags, unsigned int mask, struct statx *restrict found) {
    int result = NEXT(statx)(folder, path, flags, mask, found);
    if (result == 0) {
        tell_x(&found->stx_atime);
        tell_x(&found->stx_mtime);
        tell_x(&found->stx_ctime);
        if (found->stx_mask & STATX_BTIME) tell_x(&found->stx_btime);
    }
    return result;
}

/* --- the times of files that are set; of those that are left to the kernel nothing is moved --- */

static const struct timespec *moved_ns(const struct timespec times[2], struct timespec moved[2]) {
    if (!times) return NULL;
    for (int which = 0; which < 2; which++) {
        int is_time = times[which].tv_nsec != UTIME_NOW && times[which].tv_nsec != UTIME_OMIT;
        moved[which] = is_time ? time_of(written_ns(ns_of(&times[which]))) : times[which];
    }
    return moved;
}

static const struct timeval *moved_us(const struct timeval times[2], struct timeval moved[2]) {
    if (!times) return NULL;
    for (int which = 0; which < 2; which++) {
        int64_t told = (int64_t)times[which].tv_sec * SECOND + times[which].tv_usec * 1000LL;
        struct timespec real = time_of(written_ns(told) + 999); /* not before the leap */
        moved[which] = (struct timeval){.tv_sec = real.tv_sec, .tv_usec = real.tv_nsec / 1000};
    }
    return moved;
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    struct timespec moved[2];
    return NEXT(utimensat)(folder, path, moved_ns(times, moved), flags);
}

int futimens(int file, const struct timespec times[2]) {
    struct timespec moved[2];
    return NEXT(futimens)(file, moved_ns(times, moved));
}

int utimes(const char *path, const struct timeval times[2]) {
    struct timeval moved[2];
    return NEXT(utimes)(path, moved_us(times, moved));
}

int lutimes(const char *path, const struct timeval times[2]) {
    struct timeval moved[2];
    return NEXT(lutimes)(path, moved_us(times, moved));
}

int futimes(int file, const struct timeval times[2]) {
    struct timeval moved[2];
    return NEXT(futimes)(file, moved_us(times, moved));
}

int futimesat(int folder, const char *path, const struct timeval times[2]) {
    struct timeval moved[2];
    return NEXT(futimesat)(folder, path, moved_us(times, moved));
}

int utime(const char *path, const struct utimbuf *times) {
    struct timeval whole[2] = {{.tv_sec = times ? times->actime : 0}, {.tv_sec = times ? times->modtime : 0}};
    return utimes(path, times ? whole : NULL);
}
