"""Populations: kernels, verdicts, and the event log of a run with everything that follows.

The folder below all others: it judges nothing and proposes nothing. A run is a folder; ``open`` looks into
it, ``EventLog`` writes it, ``State`` is the fold over its events that the loop works with.

    run = populations.open("runs/2026-11-30-softmax")
    run.best.source, run.best.speedup, run.frame("individuals")

Errors that are the user's or the disk's raise ``RunError``, one line each.
"""

from populations.archive import TopArchive
from populations.check import check
from populations.folder import RunError, claim_folder, make_folder, require_run, writer_of
from populations.individual import Individual
from populations.kernel import Kernel, source_sha
from populations.lineage import Birth, Step, unified_diff
from populations.log import EventLog, Record, Store
from populations.run import Member, Run
from populations.run import open_run as open
from populations.state import OperatorRecord, State
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage, Timing, Verdict

__all__ = [
    "Birth",
    "CaseVerdict",
    "EventLog",
    "Evidence",
    "Individual",
    "Kernel",
    "Member",
    "OperatorRecord",
    "Outcome",
    "Record",
    "Run",
    "RunError",
    "Stage",
    "State",
    "Step",
    "Store",
    "Timing",
    "TopArchive",
    "Verdict",
    "check",
    "claim_folder",
    "make_folder",
    "open",
    "require_run",
    "source_sha",
    "unified_diff",
    "writer_of",
]
