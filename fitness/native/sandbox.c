/* Runs one command, a compiler on untrusted source, with next to no rights; nothing of it outlives us.
 *
 * usage: sandbox --scratch DIR --wall S --cpu S --memory BYTES [--parent PID] [--read PATH]... [--unsandboxed]
 *                -- COMMAND...
 *        sandbox --probe
 *
 * The first 64 KiB of the command's output appear on standard output. Exit status: the command's own;
 * 124 when its time was up; 125 when this program could not do its part; 128 + N when signal N killed it.
 * Three processes: this one watches the clock, its child is process 1 of a new namespace (when that one
 * dies, so does everything in it), and the grandchild gives up its rights and becomes the command.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "confine.h"

enum { OUTPUT = 64 << 10, TIMED_OUT = 124, BROKEN = 125, MOST_READ = 16 };

struct order {
    const char *scratch, *read[MOST_READ];
    int reads;
    double wall;
    rlim_t cpu, memory;
    pid_t parent;
    char **command;
};

static void fail(const char *what) {
    dprintf(STDERR_FILENO, "sandbox: %s: %s\n", what, strerror(errno));
    _exit(BROKEN);
}

/* ---- the grandchild ------------------------------------------------------------------------------------ */

static void restrict_files(const struct order *o) {
    int rules = landlock_nothing(1);
    landlock_allow_system(rules);
    for (int i = 0; i < o->reads; i++) landlock_allow(rules, o->read[i], FS_EXECUTE | FS_READ | FS_READ_DIR);
    landlock_allow(rules, "/dev/null", FS_READ | FS_WRITE);
    landlock_allow(rules, o->scratch, landlock_fs_rights() & ~(FS_EXECUTE | FS_IOCTL));
    need(landlock_enter(rules), "Landlock");
}

static void become_command(const struct order *o, int output) {
    char home[4096], temporary[4096], *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", home, temporary, "LANG=C", NULL};
    snprintf(home, sizeof home, "HOME=%s", o->scratch);
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", o->scratch);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) fail("standard streams");
    syscall(SYS_close_range, 3, ~0u, 0);
    if (chdir(o->scratch) != 0) fail("entering the scratch folder");
    limit(RLIMIT_CPU, o->cpu, o->cpu + 1);
    limit(RLIMIT_AS, o->memory, o->memory);
    limit(RLIMIT_FSIZE, 64 << 20, 64 << 20);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_NOFILE, 256, 256);
    if (strict) limit(RLIMIT_NPROC, 64, 64); /* counted per user and namespace: only meaningful in our own */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    need(drop_capabilities(), "dropping capabilities");
    restrict_files(o);
    deny_the_rest_of_the_kernel(0);
    execve(o->command[0], o->command, environment);
    fail(o->command[0]);
}

/* ---- process 1 of the namespace ----------------------------------------------------------------------- */

static void tend(const struct order *o, int output, int go) {
    char byte;
    int status = 0;
    die_with(0);
    if (read(go, &byte, 1) != 1) _exit(BROKEN); /* our parent died before we tied our life to it */
    setpgid(0, 0);
    if (strict && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("a private mount namespace");
    pid_t command = fork();
    if (command < 0) fail("fork");
    if (command == 0) {
        die_with(0);
        become_command(o, output);
    }
    close(output);
    for (pid_t ended; (ended = wait(&status)) != command;)
        if (ended < 0 && errno != EINTR) _exit(BROKEN);
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* ---- the watcher ----------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Pass on what the command prints, up to the cap; true at the end of it. */
static int pass_on(int from) {
    static ssize_t room = OUTPUT;
    char chunk[8192];
    ssize_t size = read(from, chunk, sizeof chunk);
    if (size <= 0) return size == 0;
    ssize_t keep = size < room ? size : room;
    room -= keep;
    if (keep > 0 && write(STDOUT_FILENO, chunk, (size_t)keep) != keep) _exit(BROKEN);
    return 0;
}

/* Where no namespace ends with its process 1, orphans become our children: end them, and theirs in turn. */
static void end_orphans(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    for (int found = 1; found;) {
        int child;
        FILE *children = fopen(path, "re");
        for (found = 0; children && fscanf(children, "%d", &child) == 1; found = 1) kill(child, SIGKILL);
        if (children) fclose(children);
        while (found && waitpid(-1, NULL, 0) > 0) {}
    }
}

static int watch(pid_t init, int output, double wall) {
    int handle = (int)syscall(434 /* pidfd_open */, init, 0), status = 0, timed_out = 0;
    struct pollfd ready[] = {{output, POLLIN, 0}, {handle, POLLIN, 0}};
    if (handle < 0) fail("watching the command");
    for (double end = now() + wall; !(ready[1].revents & POLLIN);) {
        double left = end - now();
        if (left <= 0 || poll(ready, 2, (int)(left * 1000) + 1) < 0) {
            timed_out = 1;
            break;
        }
        if (ready[0].revents && pass_on(output)) ready[0].fd = -1;
    }
    kill(-init, SIGKILL); /* what is left of its group, where there is no namespace to end it */
    kill(init, SIGKILL);
    if (waitpid(init, &status, 0) != init) fail("waiting for the command");
    end_orphans();
    fcntl(output, F_SETFL, O_NONBLOCK);
    while (ready[0].fd >= 0 && poll(ready, 1, 0) > 0 && !pass_on(output)) {}
    if (timed_out) return TIMED_OUT;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(const struct order *o) {
    int output[2], go[2];
    signal(SIGPIPE, SIG_IGN);
    need(enter_namespaces(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC), "new namespaces");
    die_with(o->parent);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0) fail("pipes");
    pid_t init = fork();
    if (init < 0) fail("fork");
    if (init == 0) {
        close(go[1]);
        close(output[0]);
        tend(o, output[1], go[0]);
    }
    close(output[1]);
    if (write(go[1], "", 1) != 1) fail("starting the command");
    return watch(init, output[0], o->wall);
}

/* ---- what this system offers ------------------------------------------------------------------------------ */

/* Try a step in a child: what it changes cannot be undone. */
static int works(int (*step)(void)) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) _exit(step() ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int try_user(void) { return enter_namespaces(0); }
static int try_network(void) { return enter_namespaces(CLONE_NEWNET); }
static int nothing(void) { return 1; }
static int try_processes(void) {
    return enter_namespaces(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) && works(nothing) &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
static int try_seccomp(void) {
    struct filter f;
    begin(&f);
    answer(&f, SECCOMP_RET_ALLOW);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install(&f);
}

static int probe(void) {
    int user = works(try_user), network = works(try_network), processes = works(try_processes);
    printf("user_namespace=%d\nnetwork_namespace=%d\npid_namespace=%d\n", user, network, processes);
    printf("landlock_abi=%d\nseccomp=%d\n", landlock_abi(), works(try_seccomp));
    return 0;
}

int main(int count, char **words) {
    struct order o = {.wall = 30, .cpu = 20, .memory = (rlim_t)6 << 30};
    if (count == 2 && strcmp(words[1], "--probe") == 0) return probe();
    int i = 1;
    for (; i < count && strcmp(words[i], "--") != 0; i++) {
        const char *word = words[i];
        if (strcmp(word, "--unsandboxed") == 0) { strict = 0; continue; }
        const char *value = i + 1 < count ? words[++i] : "";
        if (strcmp(word, "--scratch") == 0) o.scratch = value;
        else if (strcmp(word, "--wall") == 0) o.wall = atof(value);
        else if (strcmp(word, "--cpu") == 0) o.cpu = strtoull(value, NULL, 10);
        else if (strcmp(word, "--memory") == 0) o.memory = strtoull(value, NULL, 10);
        else if (strcmp(word, "--parent") == 0) o.parent = atoi(value);
        else if (strcmp(word, "--read") == 0 && o.reads < MOST_READ) o.read[o.reads++] = value;
        else break;
    }
    if (i >= count - 1 || strcmp(words[i], "--") != 0 || !o.scratch) {
        fprintf(stderr, "usage: sandbox --scratch DIR --wall S --cpu S --memory BYTES [--parent PID] [--read PATH]... "
                        "[--unsandboxed] -- COMMAND...\n");
        return BROKEN;
    }
    o.command = words + i + 1;
    return run(&o);
}
