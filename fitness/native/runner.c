/* Runs one kernel library on argument sets that the judge prepared, and reports nothing but "done".
 *
 * usage: runner PARENT_PID STRICT LIBRARY, with five descriptors laid out as below. Order matters here:
 * namespaces while single-threaded, buffers, the OpenMP threads, a first fence, only then the library, then
 * the last fence. From there on every thread may compute, ask for memory, wait, reply and exit: no more.
 * The judge stops this process between commands and holds the only clock that counts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "confine.h"

enum { COMMANDS = 3, REPLIES = 4, HEADER = 5, READ_ONLY = 6, OUTPUTS = 7 };
struct slot { int64_t offset, bytes, start; }; /* pages in a set's file part, and where in them the buffer starts */
struct header {
    int64_t cores, memory, sets, arguments, read_only, stride[2], slots_and_shapes[];
};
struct command { int32_t first, count; };
static int64_t page;

static void report(char kind, const char *what, const char *why) {
    char line[512];
    int length = snprintf(line, sizeof line, "%c%s: %s", kind, what, why);
    if (length > (int)sizeof line - 1) length = sizeof line - 1;
    if (write(REPLIES, line, (size_t)length) < 0) _exit(3);
    _exit(2);
}

static void fail(const char *what) { report('F', what, strerror(errno)); }

/* ---- the buffers: pages of the judge's files with a PROT_NONE page on either side --------------------- */

static void map_set(const struct header *h, const struct slot *slots, int64_t set, void **pointers) {
    int64_t total = page;
    for (int64_t i = 0; i < h->arguments; i++) total += slots[i].bytes + page;
    char *at = mmap(NULL, (size_t)total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) fail("address space for the buffers");
    at += page;
    for (int64_t i = 0; i < h->arguments; i++) {
        int output = i >= h->read_only;
        off_t offset = (off_t)(set * h->stride[output] + slots[i].offset);
        int prot = output ? PROT_READ | PROT_WRITE : PROT_READ;
        void *made = mmap(at, (size_t)slots[i].bytes, prot, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                          output ? OUTPUTS : READ_ONLY, offset);
        if (made == MAP_FAILED) fail("mapping a buffer");
        pointers[i] = at + slots[i].start;
        at += slots[i].bytes + page;
    }
}

static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm || fscanf(statm, "%lu", &pages) != 1) fail("reading /proc/self/statm");
    fclose(statm);
    return (rlim_t)pages * (rlim_t)page;
}

/* ---- the two fences -------------------------------------------------------------------------------------- */

/* The pool that every later parallel region reuses: afterwards no thread can be made. */
static void make_threads(int cores) {
    int made = 0;
#pragma omp parallel num_threads(cores) reduction(+ : made)
    made = 1;
    if (made != cores) fail("making the threads");
}

static void everywhere(int rules) {
    int good = 1;
#pragma omp parallel reduction(&& : good)
    {
        good = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && drop_capabilities() && landlock_enter(rules);
    }
    need(good, "Landlock");
    if (rules >= 0) close(rules);
}

/* What a kernel needs to compute, and to end. Nothing here opens, creates, signals others or looks around. */
static void allow_computing(struct filter *f) {
    static const int plain[] = {
        SYS_futex, SYS_sched_yield, SYS_munmap, SYS_mremap, SYS_brk, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
        SYS_getpid, SYS_gettid, SYS_rt_sigprocmask, SYS_sched_getaffinity, /* abort(), omp_get_num_procs() */
    };
    static const uint32_t advice[] = {0, 1, 2, 3, 4, 8, 14, 15}; /* access pattern, unneeded, huge pages */
    on_argument(f, SYS_read, 0, ~0u, COMMANDS, SECCOMP_RET_ALLOW);
    on_argument(f, SYS_write, 0, ~0u, REPLIES, SECCOMP_RET_ALLOW);
    on_argument(f, SYS_write, 0, ~0u, 2, SECCOMP_RET_ERRNO | EBADF); /* the C++ runtime's last words */
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) on(f, plain[i], SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        on_argument(f, SYS_madvise, 2, ~0u, advice[i], SECCOMP_RET_ALLOW);
    on_abort(f, (uint32_t)getpid(), SECCOMP_RET_ALLOW);
    on_anonymous_mmap(f, PROT_EXEC, SECCOMP_RET_ALLOW);
    on_argument(f, SYS_mprotect, 2, PROT_EXEC, 0, SECCOMP_RET_ALLOW);
}

/* First fence: besides computing, the loader may read libraries, and we may still build the last fence. */
static void fence_for_loading(void) {
    static const int loader[] = {
        SYS_read, SYS_pread64, SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_lseek, SYS_mmap,
        SYS_mprotect, SYS_madvise, SYS_readlinkat, SYS_faccessat, SYS_getrandom, SYS_prctl, SYS_capset, SYS_seccomp,
        LANDLOCK_RESTRICT,
#ifdef __x86_64__
        SYS_access, SYS_readlink, SYS_stat,
#endif
    };
    struct filter f;
    begin(&f);
    for (size_t i = 0; i < sizeof loader / sizeof *loader; i++) on(&f, loader[i], SECCOMP_RET_ALLOW);
    allow_computing(&f);
    answer(&f, SECCOMP_RET_ERRNO | EPERM);
    need(install(&f), "the first seccomp filter");
}

static void fence_for_good(void) {
    struct filter f;
    begin(&f);
    allow_computing(&f);
    answer(&f, SECCOMP_RET_KILL_PROCESS);
    need(install(&f), "the seccomp filter");
}

/* ---- the kernel -------------------------------------------------------------------------------------------- */

/* Surplus arguments are harmless in the calling conventions of x86-64 and aarch64, so few shapes of call do. */
#define A8(i) a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7]
#define P8 const void *, const void *, const void *, const void *, const void *, const void *, const void *, const void *
typedef void (*kernel8)(P8);
typedef void (*kernel16)(P8, P8);
typedef void (*kernel32)(P8, P8, P8, P8);
typedef void (*kernel72)(P8, P8, P8, P8, P8, P8, P8, P8, P8);
enum { MOST = 72 };

static void call(void *kernel, void *const *a, int64_t count) {
    if (count <= 8) ((kernel8)kernel)(A8(0));
    else if (count <= 16) ((kernel16)kernel)(A8(0), A8(8));
    else if (count <= 32) ((kernel32)kernel)(A8(0), A8(8), A8(16), A8(24));
    else ((kernel72)kernel)(A8(0), A8(8), A8(16), A8(24), A8(32), A8(40), A8(48), A8(56), A8(64));
}

static void *load_kernel(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) report('E', "the library cannot be loaded", dlerror());
    void *kernel = dlsym(handle, "kernel_function");
    if (!kernel) report('E', "the library has no entry", dlerror());
    return kernel;
}

static void confine_and_load(const char *library, int64_t cores, int64_t memory, void **kernel) {
    int loading = landlock_nothing(0), nothing = landlock_nothing(0);
    landlock_allow_system(loading);
    landlock_allow(loading, library, FS_EXECUTE | FS_READ);
    make_threads((int)cores);
    rlim_t space = address_space() + (rlim_t)memory;
    limit(RLIMIT_AS, space, space);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_FSIZE, 0, 0);
    limit(RLIMIT_NOFILE, 64, 64);
    everywhere(loading);
    fence_for_loading();
    *kernel = load_kernel(library);
    everywhere(nothing);
    fence_for_good();
}

int main(int count, char **words) {
    if (count != 4) return 64;
    strict = atoi(words[2]);
    page = sysconf(_SC_PAGESIZE);
    need(enter_namespaces(CLONE_NEWNET), "a user and network namespace");
    die_with((pid_t)atoi(words[1])); /* after the change of credentials, which forgets it */
    syscall(SYS_close_range, OUTPUTS + 1, ~0u, 0);

    struct stat size;
    if (fstat(HEADER, &size) != 0) fail("the header");
    const struct header *h = mmap(NULL, (size_t)size.st_size, PROT_READ, MAP_SHARED, HEADER, 0);
    if (h == MAP_FAILED || h->arguments >= MOST) fail("the header");
    const struct slot *slots = (const struct slot *)h->slots_and_shapes;
    void **pointers = calloc((size_t)h->sets * MOST, sizeof *pointers);
    if (!pointers) fail("memory");
    for (int64_t set = 0; set < h->sets; set++) {
        map_set(h, slots, set, pointers + set * MOST);
        pointers[set * MOST + h->arguments] = (void *)(slots + h->arguments); /* the shapes */
    }
    for (int fd = HEADER; fd <= OUTPUTS; fd++) close(fd);

    void *kernel = NULL;
    confine_and_load(words[3], h->cores, h->memory, &kernel);
    struct command wanted;
    if (write(REPLIES, "R", 1) != 1) return 3;
    while (read(COMMANDS, &wanted, sizeof wanted) == (ssize_t)sizeof wanted) {
        for (int32_t set = wanted.first; set < wanted.first + wanted.count; set++)
            call(kernel, pointers + set * MOST, h->arguments + 1);
        if (write(REPLIES, "D", 1) != 1) return 3;
    }
    return 0;
}
