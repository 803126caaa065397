"""The timing and counting instruments: clock, replay, buffers, verification, machine facts."""
