"""The promotion check: does an exported file, run for real, do what its launch plan did?

    client        the trusted end: inputs from the judge, one child, what it reports beside the plan
    process       starts that child and reads what it left
    __main__      the child's process: gives up its rights, then runs the file
    rehearsal     in the child, first: a kernel of our own, so that no file is blamed for the machine
    running       in the child: the calls, their outputs in files, and the time that they take
    witness       in the child: writes down what a call launches, fills and copies
    difference    what a report has that the plan has not, in a sentence

The child alone runs the file, on the device, and only it imports torch here. What it reports is data that is
checked by a schema; it ran the file in its own process, so a file that gets past the lints and forges its own
report is not held by this check. Its point is another: what is exported must be what was measured.
"""
