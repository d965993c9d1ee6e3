"""Which class an instruction belongs to, by the first letters of its name, for sm_80 to sm_120.

The longest prefix in ``PREFIXES`` decides. A name that none fits, but that has a U in front of one that is
there (the uniform datapath: UIMAD, ULDC, UISETP), is what it is without it. NOP is padding and not counted.
"""

from __future__ import annotations

PADDING = "NOP"
PREFIXES: dict[str, str] = {
    prefix: kind
    for kind, prefixes in {
        "global_load": "LD LDG",
        "global_store": "ST STG",
        "atomic": "ATOM RED",
        "async_copy": "LDGSTS UTMA UBLK",
        "shared": "LDS STS STAS ATOMS LDT STT UTCCP",
        "local": "LDL STL",
        "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA UTC",
        "fma": "FADD FMUL FFMA FHADD FHFMA FSWZADD",
        "half": "HADD HMUL HFMA",
        "double": "DADD DMUL DFMA DSETP DMNMX",
        "special": "MUFU",
        "comparison": "FMNMX FSEL FSET FCHK HMNMX HSET VHMNMX",
        "conversion": "F2 I2 FRND",
        "integer": "IMAD IADD ISETP IMNMX IABS IDP ISCADD LEA LOP SHF SHL SHR PRMT SGXT BMSK BREV FLO POPC "
        "PLOP PSETP SEL VI VABSDIFF",
        "exchange": "SHFL VOTE MATCH REDUX CREDUX MOVM ELECT",
        "move": "MOV LDC CS2R CS2UR S2R S2UR R2UR UR2R P2R R2P P2UR LEPC",
        "control": "BRA BRX JMP JMX EXIT CALL RET BSSY BSYNC BREAK BMOV BPT WARPSYNC YIELD NANOSLEEP KILL "
        "PREEXIT SETMAXREG UTCATOMSWS UVIRTCOUNT",
        "barrier": "BAR DEPBAR LDGDEPBAR MEMBAR FENCE ERRBAR SYNCS CCTL WARPGROUP CGABAR ARRIVES ACQ UTCBAR",
    }.items()
    for prefix in prefixes.split()
}
_LONGEST = max(map(len, PREFIXES))


def class_of(name: str) -> str:
    """One of ``populations.profile.CLASSES``; "other" for a name that no prefix fits.

    Args:
        name: of an instruction without its modifiers, e.g. "LDG" of "LDG.E.128".
    """
    found = _fitting(name)
    if found is None and name.startswith("U"):
        found = _fitting(name[1:])
    return found or "other"


def _fitting(name: str) -> str | None:
    lengths = range(min(len(name), _LONGEST), 0, -1)
    return next((PREFIXES[name[:length]] for length in lengths if name[:length] in PREFIXES), None)
