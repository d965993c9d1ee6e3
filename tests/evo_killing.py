"""A process that runs the command line in forked children, so that forty-five of them start in no time.

It reads lines of JSON: the command's arguments and the seconds after which to kill it, or null. It answers
each with the exit status (negative: the signal that ended it).
"""

import importlib
import json
import os
import signal
import sys
import time

from fitness.testing import InstantTarget


class Beside(InstantTarget):
    """A device whose builds may go on while it measures."""

    separate = True


def main() -> None:
    for module in (
        "evo.export",
        "evo.progress",
        "evo.proposing",
        "evo.session",
        "evo.summary",
        "fitness.testing",
        "deap.tools",
        "openai.resources.chat.completions",
    ):
        importlib.import_module(module)
    from evo.command import run_command_line

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(run_command_line(request["arguments"]))
        if request["kill_after"] is not None:
            time.sleep(request["kill_after"])
            os.kill(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
