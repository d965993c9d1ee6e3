// One library with many misdeeds; the first input value says which. Built without the lints and the sandbox.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

static long raw(long number, long a = 0, long b = 0, long c = 0) {
    long result = number;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

// Find a function inside libc without asking the loader: from an address in it, back to its ELF header,
// from there to its symbol table.
static void* in_libc(const char* wanted) {
    char* base = (char*)((uintptr_t)&strtol & ~4095ul);
    while (memcmp(base, "\177ELF", 4) != 0) base -= 4096;
    auto* header = (ElfW(Ehdr)*)base;
    auto* segments = (ElfW(Phdr)*)(base + header->e_phoff);
    const ElfW(Sym)* symbols = nullptr;
    const char* names = nullptr;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_DYNAMIC) continue;
        for (auto* tag = (ElfW(Dyn)*)(base + segments[i].p_vaddr); tag->d_tag != DT_NULL; tag++) {
            if (tag->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym)*)tag->d_un.d_ptr;
            if (tag->d_tag == DT_STRTAB) names = (const char*)tag->d_un.d_ptr;
        }
    }
    for (auto* s = symbols; (const char*)s < names; s++)
        if (s->st_value && strcmp(names + s->st_name, wanted) == 0) return base + s->st_value;
    return nullptr;
}

static void* nothing(void*) { return nullptr; }
static volatile int zero = 0;
static volatile size_t huge = 100ull << 30;
static volatile long deep = 0;
__attribute__((noinline)) static long recurse(volatile char* p) {
    volatile char room[4096];
    room[0] = *p;
    deep = deep + 1;
    return recurse(room) + room[0];
}

extern "C" void kernel_function(const float* x, const float* w, float* y, const int64_t* shapes) {
    const int64_t n = shapes[0];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] + w[i];
    char byte = 'D', bytes[] = "DD";
    timespec nap = {0, 1000000};
    typedef ssize_t (*writer)(int, const void*, size_t);
    typedef long (*caller)(long, ...);
    switch ((int)x[0]) {
        case 0: return;
        case 1: for (;;) asm volatile("");
        case 2: if (fork() == 0) for (;;) asm volatile(""); return;
        case 3: exit(0);
        case 4: abort();
        case 5: *(volatile int*)8 = 1; return;
        case 6: y[n + 16] = 1; return;
        case 7: ((char*)(y + n))[0] ^= 1; return;
        case 8: ((char*)y)[-1] ^= 1; return;
        case 9: const_cast<float*>(x)[1] = 0; return;
        case 10: { volatile char* p = (char*)malloc(huge); for (size_t i = 0; i < huge; i += 4096) p[i] = 1; return; }
        case 11: { float* volatile p = new float[huge / 4]; p[1] = 1; return; }
        case 12: for (int i = 0; i < 1 << 20; i++) printf("%1000d\n", i); return;
        case 13: raw(SYS_getuid); return;
        case 14: asm volatile("int $0x80" : : "a"(20)); return;
        case 15: raw(0x40000000 | SYS_getpid); return;
        case 16: ((caller)in_libc("syscall"))(SYS_getppid); return;
        case 17: ((writer)in_libc("write"))(4, bytes, 2); return;
        case 18: open("/proc/self/mem", O_RDWR); return;
        case 19: { pthread_t t; pthread_create(&t, nullptr, nothing, nullptr); return; }
        case 20: write(4, &byte, 1); for (;;) asm volatile("");
        case 21: kill(getppid(), SIGKILL); return;
        case 22: nanosleep(&nap, nullptr); return;
        case 23: mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); return;
        case 24: mprotect((void*)((uintptr_t)y & ~4095ul), 4096, PROT_READ | PROT_EXEC); return;
        case 25: mprotect((void*)((uintptr_t)x & ~4095ul), 4096, PROT_READ | PROT_WRITE); const_cast<float*>(x)[1] = 0; return;
        case 26: socket(AF_INET, SOCK_STREAM, 0); return;
        case 27: recurse(&byte); return;
        case 28: y[0] = (float)(7 / zero); return;
        case 29: read(3, &byte, 1); return;
        case 30: syscall(SYS_tgkill, raw(SYS_getpid) + 1, 1, SIGABRT); return;
        case 31: madvise((void*)((uintptr_t)y & ~4095ul), 4096, MADV_REMOVE); return;
        case 32: // its own private page over an input: the judge's inputs stay as they are
            mmap((void*)((uintptr_t)x & ~4095ul), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            const_cast<float*>(x)[1] = 99; return;
        case 33: close(4); return;
        case 34: execl("/bin/true", "true", nullptr); return;
        case 35: clock_gettime(CLOCK_MONOTONIC, &nap); return;  // in the vDSO: harmless, no system call
        case 36: y[0] = y[-5000]; return;
    }
}
