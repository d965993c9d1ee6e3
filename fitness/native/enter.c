/* What a forked process calls to give up its rights before it meets untrusted code, in two steps:
 *
 *   separate()   then fork: the child is process 1 of a new namespace and takes everything in it with it
 *   enter()      in that child: limits, no capabilities, a few folders to read, one to write, few system calls
 *   enter_with_device()   the same for one that drives a device
 *
 * A step that fails says so on standard error and ends the process with status 125.
 */
#define _GNU_SOURCE
#include <sys/mount.h>

#include "confine.h"

enum { BROKEN = 125 };

static void fail(const char *what) {
    dprintf(STDERR_FILENO, "sandbox: %s: %s\n", what, strerror(errno));
    _exit(BROKEN);
}

/* New user, process, mount, network and IPC namespaces. Where `is_strict` is 0, what lacks is done without. */
void separate(int is_strict) {
    strict = is_strict;
    need(enter_namespaces(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC), "new namespaces");
}

/* Mount a file system of our own over everybody's, after `separate` and its fork; whether the system lets us. */
static int mount_own(const char *kind, const char *where) {
    if (!strict || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
    return mount("none", where, kind, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* No new process or thread, no other program. A limit on processes would not do: it does not bind root. */
static void deny_company(void) {
    static const int denied[] = {
#ifdef SYS_fork
        SYS_fork, SYS_vfork,
#endif
        SYS_clone, 435 /* clone3 */, SYS_execve, SYS_execveat,
    };
    struct filter f;
    begin(&f);
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) on(&f, denied[i], SECCOMP_RET_ERRNO | EPERM);
    answer(&f, SECCOMP_RET_ALLOW);
    need(install(&f), "the seccomp filter");
}

/* Streams, folder and limits; `log` becomes standard output and error, all other descriptors are closed. */
static void settle(const char *scratch, int log, unsigned long cpu, rlim_t file, rlim_t files) {
    die_with(0);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) fail("standard streams");
    syscall(SYS_close_range, 3, ~0u, 0);
    if (chdir(scratch) != 0) fail("entering the scratch folder");
    limit(RLIMIT_CPU, cpu, cpu);
    limit(RLIMIT_FSIZE, file, file);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_NOFILE, files, files);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    need(drop_capabilities(), "dropping capabilities");
}

/* Rules that let a process read what it lives on, and write into `scratch`; `reads` ends with NULL. */
static int rules_for(const char *scratch, const char *const *reads) {
    int rules = landlock_nothing(1);
    landlock_allow_system(rules);
    for (; *reads; reads++) landlock_allow(rules, *reads, FS_EXECUTE | FS_READ | FS_READ_DIR);
    landlock_allow(rules, "/dev/null", FS_READ | FS_WRITE);
    landlock_allow(rules, "/dev/urandom", FS_READ); /* torch does not start without it */
    landlock_allow(rules, scratch, landlock_fs_rights() & ~(FS_EXECUTE | FS_IOCTL));
    return rules;
}

void enter(const char *scratch, const char *const *reads, int log, unsigned long cpu, unsigned long memory,
           int alone, int is_strict) {
    strict = is_strict;
    settle(scratch, log, cpu, 64 << 20, 256);
    limit(RLIMIT_AS, memory, memory);
    if (strict) limit(RLIMIT_NPROC, 64, 64); /* counted per user and namespace: only meaningful in our own */
    need(landlock_enter(rules_for(scratch, reads)), "Landlock");
    deny_the_rest_of_the_kernel(0);
    if (alone) deny_company();
}

/* A driver maps the whole of the device's memory, hence no limit on addresses; it talks to the device by ioctl on
 * `devices`, reads what `facts` name of the system (all of /proc, where it can have one of its own), may share memory
 * with itself, and makes Unix sockets, which lead nowhere in a namespace of their own. Lists end with NULL. `file`:
 * bytes of the largest file. */
void enter_with_device(const char *scratch, const char *const *reads, const char *const *devices,
                       const char *const *facts, int log, unsigned long cpu, unsigned long file, int is_strict) {
    strict = is_strict;
    int memory = mount_own("tmpfs", "/dev/shm"), processes = mount_own("proc", "/proc");
    settle(scratch, log, cpu, file, 4096);
    if (strict) limit(RLIMIT_NPROC, 512, 512);
    int rules = rules_for(scratch, reads);
    if (memory) landlock_allow(rules, "/dev/shm", landlock_fs_rights() & ~(FS_EXECUTE | FS_IOCTL));
    if (processes) landlock_allow(rules, "/proc", FS_READ | FS_READ_DIR);
    /* CUDA names its threads, and gives up where it cannot: /proc/self/task/N/comm. */
    landlock_allow(rules, "/proc/self", FS_READ | FS_READ_DIR | FS_WRITE | FS_TRUNCATE);
    for (; *devices; devices++) landlock_allow(rules, *devices, FS_READ | FS_WRITE | FS_READ_DIR | FS_IOCTL);
    for (; *facts; facts++) landlock_allow(rules, *facts, FS_READ | FS_READ_DIR);
    need(landlock_enter(rules), "Landlock");
    deny_the_rest_of_the_kernel(1);
}
