"""The trusted side of judging: argument sets, the runner's clock, the gate. Runs in a child process."""
