"""Clock, replay, buffers, verification and machine facts."""
