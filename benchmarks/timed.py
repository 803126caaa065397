"""The base of every benchmark that is timed on a GPU: protocol, setup, skipping and verification, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from benchmarks.instruments import device, experiment, lacking, prebuild
from benchmarks.instruments.clock import EventClock
from benchmarks.instruments.experiment import Work
from benchmarks.instruments.replay import Replay
from gpu_kernels import catalog, launch


class _Timed:
    """Seconds a launch, by CUDA events around a replayed graph of launches.

    A subclass gives its axes, and says in `work` what a point on them launches.
    """

    # asv's protocol: a sample is one call, which is one replay; two processes, so that their spread counts.
    number = 1
    rounds = 2
    repeat = (10, 20, 0.04)
    warmup_time = 0.01
    timeout = 120.0

    #: Whether a single pair of buffers stays in the L2 cache; else buffers rotate and each launch goes to DRAM.
    in_l2: ClassVar[bool] = False

    _replay: Replay | None = None
    timer: EventClock

    def work(self, *params: Any) -> Work:
        """What the configuration `params` launches."""
        raise NotImplementedError("a subclass says what is launched")

    def setup_cache(self) -> str:
        """Compile everything once, in parallel; return the folder that lives as long as this run of asv."""
        prebuild.for_device()
        return str(Path.cwd())

    def setup(self, run_folder: str, *params: Any) -> None:
        """Prepare and verify the configuration, once a process: asv calls this before every sample."""
        if self._replay is None:
            device.require()
            self._replay = experiment.prepare(self.work(*params), in_l2=self.in_l2, verified=Path(run_folder))
            self.timer = EventClock(self._replay)
        self.timer.reset()

    def replay(self) -> None:
        """Start one replay; the clock waits for it."""
        assert self._replay is not None, "setup comes first"
        self._replay()


def kernel_work(name: str, dtype: str, flag_set: str, **arguments: int) -> Work:
    """The work of launching a kernel of the catalog.

    Raises
    ------
    NotImplementedError : the installed commit knows no such kernel, dtype or flag set.
    """
    with lacking.skipped():
        kernel = catalog.get(name)
        function = launch.load(kernel, dtype, flag_set)
    output_shape, input_shape = kernel.arrays(**arguments)
    title = ", ".join([name, dtype, flag_set, *(f"{key}={value}" for key, value in arguments.items())])
    return Work(
        name=title,
        identity=f"{title} {function.cubin.sha256} {kernel.geometry(**arguments)}",
        dtype=dtype,
        output_shape=output_shape,
        input_shape=input_shape,
        launch=lambda output, input, stream: function(output, input, stream=stream, **arguments),
        reference=lambda before, source: kernel.reference(before, source, **arguments),
    )
