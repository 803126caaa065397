"""The timing instrument: clock, graph replays, buffers, verification, machine facts."""
