"""The text of a C++ kernel: its normal form, and the lints.

Lints cost nothing and give a clear message with a line number, but they are not the gate: what holds is the
sandbox around the compiler, the check of the library, and the confined runner.
"""

from __future__ import annotations

import re

# Comments, and the texts in which "//" is none. A quote after a digit only separates digits: 1'000'000.
_COMMENT_OR_TEXT = re.compile(
    r"""//(?:[^\\\n]|\\.)*|/\*.*?(?:\*/|\Z)
    |\b(?:u8|[uUL])?R"(?P<fence>[^()\s\\]{0,16})\(.*?\)(?P=fence)"
    |"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F_])'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL | re.VERBOSE,
)
_TEXT = re.compile(r'"\x01(\d+)\x01"')
_MARKS = re.escape("+-*/%&|^=<>!:.#")
# Blanks that keep two tokens apart; all others go.
_SEPARATING = re.compile(rf"""(?<=[\w"'])\s+(?=[\w"'])|(?<=[{_MARKS}])\s+(?=[{_MARKS}])|(?<=\.)\s+(?=\d)""")
_ENTRY = re.compile(r"\bkernel_function\s*\(")
_EXTERN_C = re.compile(r'\bextern\s*"C"')
_INCLUDE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*include(?:_next)?\b[ \t]*([^\n]*)", re.MULTILINE)
_FOREIGN_HEADER = re.compile(
    r"<(?:sys/|linux/|asm/|net|arpa/|rpc|bits/stdc|experimental/"
    r"|(?:unistd|dlfcn|fcntl|spawn|pthread|signal|csignal|sched|ucontext|setjmp|csetjmp|poll|link|elf|dirent|pwd"
    r"|termios|semaphore|ftw|glob|wordexp|aio|mqueue|thread|mutex|shared_mutex|future|condition_variable|atomic_wait"
    r"|stop_token|barrier|latch|fstream|iostream|ostream|istream|sstream|filesystem|cstdio|stdio|syscall)(?:\.h)?>)"
)
_CALLS = {
    "syscall": "raw system calls",
    "system": "starting programs",
    "popen": "starting programs",
    "fork": "making processes",
    "vfork": "making processes",
    "clone": "making processes",
    "execve": "starting programs",
    "dlopen": "loading libraries",
    "dlsym": "looking up symbols",
    "ptrace": "tracing processes",
    "mprotect": "changing memory protection",
    "kill": "signals",
    "raise": "signals",
    "signal": "signals",
    "exit": "ending the process",
    "_exit": "ending the process",
    "_Exit": "ending the process",
    "quick_exit": "ending the process",
    "abort": "ending the process",
    "printf": "output",
    "puts": "output",
    "fopen": "files",
    "getenv": "the environment",
}
_CALL = re.compile(r"(?<![\w.>])(" + "|".join(_CALLS) + r")\s*\(")
_ATTRIBUTE = re.compile(
    r"(?:__attribute__\s*\(\([^;{]*?\b|\[\[[^\]]*\bgnu::)_*(constructor|destructor|ifunc|init_priority)_*\b"
)
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b")
_ASM_TRAP = re.compile(
    r"\b(?:syscall|sysenter|svc)\b|\bint\s*\$?\s*(?:0x80|128)\b|\.(?:incbin|section|include)\b"
)


def normalise(source: str) -> str:
    """The source without comments and layout; two sources with equal results are the same program text."""
    return _compact(*_without_comments(source))


def fault(source: str, arguments: int) -> str | None:
    """The first thing that forbids building this source, with its line; None where nothing does.

    Args:
        source: the kernel's text.
        arguments: how many arguments the problem passes, the shapes included.
    """
    code, texts = _without_comments(source)
    return _entry_fault(code, texts, arguments) or _lint(code, texts)


def line_of(source: str, at: int) -> int:
    """The line, from 1, of an offset."""
    return source.count("\n", 0, at) + 1


def _without_comments(source: str) -> tuple[str, list[str]]:
    """The code, line by line as it was, with comments gone and texts numbered; and the texts."""
    texts: list[str] = []

    def blank(found: re.Match[str]) -> str:
        text = found[0]
        lines = "\n" * text.count("\n")
        if text.startswith(("//", "/*")):
            return lines or " "
        texts.append(text)
        return f'"\x01{len(texts) - 1}\x01"{lines}'

    return _COMMENT_OR_TEXT.sub(blank, source), texts


def _with_texts(code: str, texts: list[str]) -> str:
    return _TEXT.sub(lambda found: texts[int(found[1])], code)


def _compact(code: str, texts: list[str]) -> str:
    """The code with as few blanks as keep tokens apart; preprocessor lines stay lines."""
    pieces: list[str] = []
    plain: list[str] = []

    def flush() -> None:
        joined = _SEPARATING.sub("\0", " ".join(plain))
        pieces.append("".join(joined.split()).replace("\0", " "))
        plain.clear()

    for line in code.replace("\\\n", " ").split("\n"):
        if line.lstrip().startswith("#"):
            flush()
            pieces.append(" ".join(line.split()))
        else:
            plain.append(line)
    flush()
    return _with_texts("\n".join(piece for piece in pieces if piece), texts)


def _entry_fault(code: str, texts: list[str], wanted: int) -> str | None:
    """What is wrong with the entry: missing, not C, or another number of arguments than the problem has."""
    entry = _ENTRY.search(code)
    if entry is None or not _EXTERN_C.search(_with_texts(code, texts)):
        return 'defines no entry; a kernel defines extern "C" void kernel_function(...)'
    depth, commas, at = 1, 0, entry.end()
    for at in range(entry.end(), len(code)):
        c = code[at]
        depth += (c in "([{<") - (c in ")]}>")
        commas += c == "," and depth == 1
        if depth == 0:
            break
    inside = code[entry.end() : at].strip()
    found = commas + 1 if inside and inside != "void" else 0
    if found == wanted:
        return None
    line = line_of(code, entry.start())
    return (
        f"line {line}: kernel_function takes {found} arguments, this problem passes {wanted}, "
        "of which shapes is the last"
    )


def _lint(code: str, texts: list[str]) -> str | None:
    """The first thing a kernel has no business with, and its line."""
    full = _with_texts(code, texts)
    for found in _INCLUDE.finditer(full):
        header, line = found[1].strip()[:60], line_of(full, found.start(1))
        if not header.startswith("<"):
            return f"line {line}: include {header}: a kernel stands alone, <standard> headers only"
        if _FOREIGN_HEADER.match(header):
            return f"line {line}: include {header}: a kernel only computes, it needs no such header"
    for found in _CALL.finditer(code):
        what = _CALLS[found[1]]
        return f"line {line_of(code, found.start())}: {found[1]}(...): {what} is not a kernel's business"
    for found in _ATTRIBUTE.finditer(code):
        line = line_of(code, found.start())
        return f"line {line}: attribute {found[1]}: nothing may run before the entry is called"
    trap = _ASM_TRAP.search(full) if _ASM.search(code) else None
    if trap:
        return f"line {line_of(full, trap.start())}: assembly with {trap[0]} is not a kernel's business"
    return None
