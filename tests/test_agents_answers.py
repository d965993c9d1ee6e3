"""Reading kernels, edits and data out of what models really send; no text whatever raises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.agents import cases, diagnose, edits, reflect
from operators.agents.answers import Unread, Written, plain, source
from operators.agents.chat import Answer
from operators.agents.data import data
from operators.agents.edits import Edit, applied
from operators.agents.tokens import count

CPP = """#include <cstdint>

constexpr int TILE = 64;  // tune: 32 64 128

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0]; ++i) {
        out[i] = x[i] * 2.0f;
    }
}
"""
TRITON = '''"""Doubles."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def kernel_function(x):
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
'''
OTHER = CPP.replace("TILE = 64", "TILE = 32")
KERNELS = {"cpp": CPP, "triton": TRITON}


def read(
    text: str, language: str = "cpp", finish: str = "stop", known: tuple[str, ...] = ()
) -> Written | Unread:
    return source(Answer(text, finish=finish), language, known)


def fence(text: str, tag: str = "cpp") -> str:
    return f"```{tag}\n{text}```"


REPLIES = {
    "alone": "{fence}",
    "prose around": "Sure! Here it is.\n\n{fence}\n\nIt should be faster.",
    "rationale": "Rationale: one pass\n\n{fence}",
    "wrong tag": "```rust\n{text}```",
    "no tag": "```\n{text}```",
    "tildes": "~~~cpp\n{text}~~~",
    "long fence": "````cpp\n{text}````",
    "title in the fence": "```cpp title=kernel.cpp\n{text}```",
    "thoughts": "<think>first\n```cpp\nint wrong;\n```\n</think>\n{fence}",
    "thoughts of the template": "let me see ``` </think>\n{fence}",
    "usage behind": "{fence}\n\nBuild it:\n```bash\ng++ -O3 kernel.cpp\n```",
    "piece before": "The old loop was\n```cpp\nfor (;;) {{}}\n```\nnow:\n{fence}",
    "not closed": "```cpp\n{text}",
    "no fence": "{text}",
    "no fence, prose": "Here is the kernel:\n\n{text}\n\nIt doubles each element, as was asked.",
    "in a list": "1. The kernel:\n\n   ```cpp\n{indented}   ```\n",
}


@pytest.mark.parametrize("language", KERNELS)
@pytest.mark.parametrize("reply", REPLIES)
def test_a_source_is_read_out_of_any_reasonable_reply(reply: str, language: str) -> None:
    text = KERNELS[language]
    indented = "".join(f"   {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    said = REPLIES[reply].format(text=text, fence=fence(text), indented=indented)
    found = read(said, language)
    assert isinstance(found, Written), found
    assert found.source.strip() == text.strip()


def test_a_kernel_may_have_another_entry() -> None:
    renamed = TRITON.replace("def kernel_function", "def double_all")
    found = source(Answer(fence(renamed, "python")), "triton", entry="double_all")
    assert isinstance(found, Written) and found.source == renamed
    assert isinstance(source(Answer(fence(renamed, "python")), "triton"), Unread)


@pytest.mark.parametrize("language", KERNELS)
def test_windows_line_ends_become_unix_ones(language: str) -> None:
    found = read(fence(KERNELS[language]).replace("\n", "\r\n"), language)
    assert isinstance(found, Written) and found.source == KERNELS[language]


@pytest.mark.parametrize("wrap", [lambda text: text, fence, lambda text: f"Rationale: in it\n{fence(text)}"])
@pytest.mark.parametrize("key", ["source", "code", "kernel", "content"])
def test_a_source_in_json_is_unwrapped(wrap, key: str) -> None:  # type: ignore[no-untyped-def]
    said = json.dumps({"rationale": "wrapped", key: wrap(CPP)})
    for text in (said, f"```json\n{said}\n```"):
        found = read(text)
        assert isinstance(found, Written) and (found.source, found.rationale) == (CPP, "wrapped")


def test_the_last_of_several_kernels_is_taken_and_the_parent_is_not() -> None:
    found = read(f"Before:\n{fence(OTHER)}\nAfter:\n{fence(CPP)}", known=(OTHER,))
    assert isinstance(found, Written) and found.source == CPP
    found = read(f"After:\n{fence(CPP)}\nThe original was:\n{fence(OTHER)}", known=(OTHER,))
    assert isinstance(found, Written) and found.source == CPP


def test_a_kernel_in_two_fences_is_joined() -> None:
    head, host = TRITON.split("\n\ndef kernel_function")
    said = f"Device:\n{fence(head, 'python')}\nHost:\n{fence('def kernel_function' + host, 'python')}"
    found = read(said, "triton")
    assert isinstance(found, Written) and compile(found.source, "k.py", "exec")


REASONS = {
    "": "the answer is empty",
    "  \n ": "the answer is empty",
    "<think>hmm": "the answer has thoughts only",
    "I'm sorry, but I can't help with that.": "the model declines: I'm sorry, but I can't help with that.",
    "It is fast already.": "there is no source in the answer: It is fast already.",
    "```cpp\nint x;\n```": 'none of the 1 fenced texts defines extern "C" kernel_function',
    f"```cpp\n{CPP[:-9]}": "the source is cut off",
    fence(OTHER): "the source is one that it was shown, unchanged",
}


@pytest.mark.parametrize("text", REASONS)
def test_what_cannot_be_read_has_a_reason(text: str) -> None:
    assert read(text, known=(OTHER,)) == Unread(REASONS[text])


def test_an_answer_cut_off_by_the_token_limit_says_so() -> None:
    assert read(f"```cpp\n{CPP[:-9]}", finish="length") == Unread("the source is cut off by the token limit")
    assert read("", finish="length") == Unread("the token limit was reached before any answer")
    found = read(f"{fence(CPP)}\nAnd it is fast bec", finish="length")
    assert isinstance(found, Written) and found.source == CPP


def test_a_refusal_of_the_servers_is_a_reason() -> None:
    assert source(Answer("", refusal="No."), "cpp") == Unread("the model declines: No.")


def test_a_source_too_large_is_no_child() -> None:
    found = read(fence(CPP + "// more\n" * 40_000))
    assert isinstance(found, Unread) and "262144" in found.reason


def test_a_rationale_is_one_printable_line() -> None:
    found = read(f"**Rationale:** it\treads \x07 once{' and again' * 99}\n{fence(CPP)}")
    assert isinstance(found, Written)
    assert (
        found.rationale.startswith("it reads")
        and found.rationale.isprintable()
        and len(found.rationale) <= 200
    )


EDIT = """Rationale: an addition
<<<<<<< SEARCH
        out[i] = x[i] * 2.0f;
=======
        out[i] = x[i] + x[i];
>>>>>>> REPLACE
"""


@pytest.mark.parametrize("text", [EDIT, EDIT.replace("\n", "\r\n"), f"```diff\n{EDIT}```"])
def test_an_edit_is_applied_to_the_letter(text: str) -> None:
    found = edits.edits(Answer(text))
    assert isinstance(found, tuple)
    assert applied(CPP, found) == CPP.replace("x[i] * 2.0f", "x[i] + x[i]")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Edit("        out[i] = x[i];", ""), "edit 1 does not stand in the source: 'out[i] = x[i];'"),
        (Edit("x[i] * 2.0f", "x[i]"), "edit 1 does not stand in the source: 'x[i] * 2.0f'"),
        (Edit("", "int y;"), "edit 1 searches for nothing"),
        (Edit("    }", "    }"), "the edits change nothing"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: Edit, reason: str) -> None:
    assert applied(CPP, [edit]) == Unread(reason)


def test_an_edit_that_fits_twice_is_refused() -> None:
    assert applied("a\nb\na\n", [Edit("a", "c")]) == Unread("edit 1 stands in the source 2 times: 'a'")


def test_an_edit_cut_off_applies_none() -> None:
    cut = EDIT + EDIT[:40]
    assert edits.edits(Answer(cut, finish="length")) == Unread("an edit is cut off by the token limit")


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, 2]}', '```json\n{"a": [1, 2],}\n```', 'Here: {"a": [1, 2]} as asked.',
     '<think>{}</think>{"a": [1, 2]}', '```\n{"a": [1, 2]}\n```\nand {"b": 1}'],
)  # fmt: skip
def test_json_is_read_out_of_any_reasonable_reply(text: str) -> None:
    assert data(Answer(text)) == {"a": [1, 2]}


def test_a_diagnosis_needs_a_prescription_and_a_known_bottleneck() -> None:
    said = {
        "bottleneck": "Memory_Bandwidth bound",
        "evidence": "90 %",
        "prescriptions": ["fuse", {"what": "x", "why": "y"}],
    }
    found = diagnose.read(Answer(json.dumps(said)))
    assert not isinstance(found, Unread)
    assert (found.bottleneck, found.evidence, found.prescriptions) == (
        "memory bandwidth",
        ("90 %",),
        ("fuse", "x; y"),
    )
    assert isinstance(diagnose.read(Answer('{"bottleneck": "cache"}')), Unread)


def test_cases_are_data_that_the_problem_has() -> None:
    writer = cases.WriteCases({"ROWS": 8, "COLS": 16}, {"normal": "N(0, 1)"})
    good = {"constants": {"ROWS": 1}, "distribution": "normal", "parameters": {"scale": 3}, "why": "one row"}
    bad = [
        {"constants": {"DEPTH": 1}}, {"constants": {"ROWS": 0}}, {"constants": {"ROWS": True}},
        {"constants": {"ROWS": 2**40}}, {"constants": {"ROWS": "os.system"}}, {"distribution": "evil"},
        {"constants": {"ROWS": 1}, "parameters": {"scale": float("inf")}}, {}, 3, None,
    ]  # fmt: skip
    found = writer.read(Answer(json.dumps({"cases": [*bad, good, good]})))
    assert isinstance(found, tuple) and len(found) == 1
    assert found[0] == cases.ProposedCase((("ROWS", 1),), "normal", (("scale", 3.0),), "one row")
    assert isinstance(writer.read(Answer(json.dumps({"cases": bad}))), Unread)


def test_a_lesson_needs_two_kernels_that_were_shown() -> None:
    said = [
        {"lesson": "fuse", "kernels": [1, 2, 99]},
        {"lesson": "guess", "kernels": [1, 77]},
        {"lesson": ""},
    ]
    found = reflect.read(Answer(json.dumps({"lessons": said})), {1, 2, 3})
    assert isinstance(found, tuple) and [(each.text, each.ids) for each in found] == [("fuse", (1, 2))]


PIECES = st.sampled_from(
    ["```", "```cpp\n", "~~~", "\n", "\r\n", "\r", "<think>", "</think>", "<<<<<<< SEARCH\n", "=======\n",
     ">>>>>>> REPLACE\n", CPP, TRITON, CPP[:90], "{", "}", '{"source": "', '"}', "[", "\ud800", "\ufeff", "İ",
     "Rationale: ", "kernel_function", 'extern "C"', "import triton\n", "#include <x>\n", "@triton.jit\n",
     "\\", "(" * 300, "\0", '"""']
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(), max_size=24).map("".join)


@settings(deadline=None)
@given(TEXTS, st.sampled_from(["stop", "length", "odd"]), st.sampled_from(["cpp", "triton", "cuda"]))
def test_no_text_whatever_raises(text: str, finish: str, language: str) -> None:
    answer = Answer(text, finish=finish)
    found = source(answer, language, (CPP, text))
    assert isinstance(found, Written | Unread)
    if isinstance(found, Written):
        found.source.encode()
        assert found.source.strip() and found.rationale.isprintable() and "\r" not in found.source
    changes = edits.edits(answer)
    if isinstance(changes, tuple):
        applied(text, changes)
    data(answer)
    diagnose.read(answer)
    reflect.read(answer, {1})
    cases.WriteCases({"ROWS": 8}, {"normal": ""}).read(answer)
    assert count(text) >= 0


KEYS = st.sampled_from(
    ["source", "code", "why", "cases", "constants", "ROWS", "distribution", "parameters", "lessons", "lesson",
     "kernels", "items", "bottleneck", "evidence", "prescriptions"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_no_json_whatever_raises(value: object) -> None:
    answer = Answer(json.dumps(value))
    source(answer, "cpp")
    diagnose.read(answer)
    reflect.read(answer, {1, 2})
    cases.WriteCases({"ROWS": 8}, {"normal": ""}).read(answer)


@settings(deadline=None)
@given(st.text(), st.text())
def test_tokens_of_a_text_are_at_most_those_of_its_parts(one: str, other: str) -> None:
    assert count(one + other) <= count(one) + count(other) + 1
    assert count(plain(one)) <= 3 * len(one.encode("utf-8", "surrogatepass")) + 1


@pytest.mark.parametrize("file", sorted(Path("populations/seeds").rglob("softmax/*.*")), ids=str)
def test_every_seed_is_read_back_as_it_is(file: Path) -> None:
    text = file.read_text()
    found = read(fence(text), "cpp" if file.suffix == ".cpp" else "triton")
    assert isinstance(found, Written) and found.source == text
