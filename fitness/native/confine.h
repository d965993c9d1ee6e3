/* How a process gives up its rights: namespaces, capabilities, Landlock, seccomp and limits.
 *
 * Both programs of this folder include it. Each defines `fail(what)` first, which reports and exits, and
 * `strict`: where it is false (the user said --unsandboxed), a step that the system cannot do is skipped.
 */
#pragma GCC diagnostic ignored "-Wunused-function" /* each program uses its part */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows x86-64 and aarch64 only"
#endif

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static int strict = 1;
static void fail(const char *what);

static void need(int done, const char *what) {
    if (!done && strict) fail(what);
}

/* ---- namespaces ------------------------------------------------------------------------------------ */

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t written = write(fd, text, strlen(text));
    close(fd);
    return written == (ssize_t)strlen(text);
}

/* Enter a new user namespace and the others in `kinds`, keeping our own ids. Single-threaded callers only. */
static int enter_namespaces(int kinds) {
    char map[64];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | kinds) != 0) return 0;
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    if (!put("/proc/self/uid_map", map)) return 0;
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    return put("/proc/self/gid_map", map);
}

/* ---- capabilities (of the calling thread) ------------------------------------------------------------ */

static int drop_capabilities(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    for (int cap = 0; cap < 64; cap++) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* fails without rights: nothing to drop */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0;
}

/* ---- Landlock (of the calling thread) ---------------------------------------------------------------- */
/* Numbers and structures are spelled out: older system headers lack some or all of them. */

enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };
#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE (1ULL << 1)
#define FS_READ (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_TRUNCATE (1ULL << 14)
#define FS_IOCTL (1ULL << 15)
#define FS_OF_A_FILE (FS_EXECUTE | FS_WRITE | FS_READ | FS_TRUNCATE | FS_IOCTL)

struct ruleset { uint64_t fs, net, scoped; };
struct beneath { uint64_t allowed; int32_t parent; } __attribute__((packed));

static int landlock_abi(void) {
    long abi = syscall(LANDLOCK_CREATE, NULL, 0, 1);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t landlock_fs_rights(void) {
    int abi = landlock_abi();
    if (abi >= 5) return 0xFFFF;
    if (abi >= 3) return 0x7FFF;
    return abi == 2 ? 0x3FFF : 0x1FFF;
}

/* A ruleset that handles, hence denies, all that this kernel knows; `scoped` also cuts signals and sockets off. */
static int landlock_nothing(int scoped) {
    int abi = landlock_abi();
    struct ruleset rules = {landlock_fs_rights(), 3, scoped ? 3 : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    return abi ? (int)syscall(LANDLOCK_CREATE, &rules, size, 0) : -1;
}

/* Allow `rights` below a path; a path that does not exist needs no rule. */
static void landlock_allow(int rules, const char *path, uint64_t rights) {
    struct stat what;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || rules < 0) return;
    if (fstat(fd, &what) == 0 && !S_ISDIR(what.st_mode)) rights &= FS_OF_A_FILE;
    struct beneath rule = {rights & landlock_fs_rights(), fd};
    need(syscall(LANDLOCK_ADD, rules, 1, &rule, 0) == 0, "a Landlock rule was refused");
    close(fd);
}

static int landlock_enter(int rules) { return rules >= 0 && syscall(LANDLOCK_RESTRICT, rules, 0) == 0; }

/* Read and execute what the loader and the compiler live on; nothing of /home, /root, /proc, /tmp. */
static void landlock_allow_system(int rules) {
    static const char *const roots[] = {"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        landlock_allow(rules, roots[i], FS_EXECUTE | FS_READ | FS_READ_DIR);
}

/* ---- seccomp ------------------------------------------------------------------------------------------ */

struct filter {
    struct sock_filter code[400];
    unsigned short length;
};

static void emit(struct filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no) {
    if (f->length == sizeof f->code / sizeof *f->code) fail("the seccomp filter is too long");
    f->code[f->length++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct filter *f, uint32_t offset) { emit(f, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void answer(struct filter *f, uint32_t action) { emit(f, BPF_RET | BPF_K, action, 0, 0); }

/* Calls of another architecture (int 0x80, x32) would slip past numbers of ours: they kill. */
static void begin(struct filter *f) {
    f->length = 0;
    load(f, offsetof(struct seccomp_data, arch));
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    answer(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
    emit(f, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    answer(f, SECCOMP_RET_KILL_PROCESS);
}

static void on(struct filter *f, int call, uint32_t action) {
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    answer(f, action);
}

/* Act on `call` only where `(argument & mask) == value`; the kernel reads these arguments as 32-bit numbers. */
static void on_argument(struct filter *f, int call, int argument, uint32_t mask, uint32_t value, uint32_t action) {
    uint32_t where = offsetof(struct seccomp_data, args) + 8 * (uint32_t)argument;
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5);
    load(f, where); /* little-endian: the low half comes first */
    emit(f, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(f, action);
    load(f, offsetof(struct seccomp_data, nr));
}

/* tgkill of SIGABRT to a thread of process `pid`, which is how abort() ends. */
static void on_abort(struct filter *f, uint32_t pid, uint32_t action) {
    uint32_t args = offsetof(struct seccomp_data, args);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 6);
    load(f, args);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, pid, 0, 3);
    load(f, args + 8 * 2);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, SIGABRT, 0, 1);
    answer(f, action);
    load(f, offsetof(struct seccomp_data, nr));
}

/* mmap with `mask` of prot clear and MAP_ANONYMOUS set. */
static void on_anonymous_mmap(struct filter *f, uint32_t prot_mask, uint32_t action) {
    uint32_t args = offsetof(struct seccomp_data, args);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 8);
    load(f, args + 8 * 2);
    emit(f, BPF_ALU | BPF_AND | BPF_K, prot_mask, 0, 0);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4);
    load(f, args + 8 * 3);
    emit(f, BPF_ALU | BPF_AND | BPF_K, MAP_ANONYMOUS, 0, 0);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, MAP_ANONYMOUS, 0, 1);
    answer(f, action);
    load(f, offsetof(struct seccomp_data, nr));
}

/* Install for every thread of the process. SPEC_ALLOW: no slower speculation than the baselines run with. */
static int install(struct filter *f) {
    struct sock_fprog program = {f->length, f->code};
    long flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}

/* Calls that a compiler never makes and that reach deep into the kernel, or out of the sandbox. Drivers of devices make
 * Unix sockets: `unix_sockets` lets them. */
static void deny_the_rest_of_the_kernel(int unix_sockets) {
    static const int denied[] = {
        SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
        SYS_unshare, SYS_setns, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key,
        SYS_request_key, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot,
        SYS_swapon, SYS_swapoff, SYS_open_by_handle_at, SYS_name_to_handle_at,
        425, 426, 427, /* io_uring */
        428, 429, 430, 431, 432, 433, /* the new mount calls */
        438, /* pidfd_getfd */
    };
    struct filter f;
    begin(&f);
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) on(&f, denied[i], SECCOMP_RET_ERRNO | EPERM);
    if (unix_sockets) {
        on_argument(&f, SYS_socket, 0, ~0u, 1 /* AF_UNIX */, SECCOMP_RET_ALLOW);
        on_argument(&f, SYS_socketpair, 0, ~0u, 1, SECCOMP_RET_ALLOW);
    }
    on(&f, SYS_socket, SECCOMP_RET_ERRNO | EPERM);
    on(&f, SYS_socketpair, SECCOMP_RET_ERRNO | EPERM);
    answer(&f, SECCOMP_RET_ALLOW);
    need(install(&f), "the seccomp filter");
}

/* ---- limits ---------------------------------------------------------------------------------------------- */

static void limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit old, wanted = {soft, hard};
    if (getrlimit(resource, &old) == 0 && old.rlim_max != RLIM_INFINITY && old.rlim_max < hard) {
        wanted.rlim_max = old.rlim_max;
        if (wanted.rlim_cur > old.rlim_max) wanted.rlim_cur = old.rlim_max;
    }
    need(setrlimit(resource, &wanted) == 0, "a resource limit was refused");
}

/* Die with the parent, also if it died before we asked for that. */
static void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (parent > 0 && getppid() != parent) _exit(1);
}
