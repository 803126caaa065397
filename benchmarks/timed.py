"""The base of every benchmark that is timed on a GPU: protocol, setup, skipping and verification, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from benchmarks.instruments import clocks, device, lacking, prebuild, readings, remarks
from benchmarks.instruments.clock import EventClock, TimedWork
from benchmarks.instruments.experiment import Experiment, Work
from benchmarks.instruments.replay import Cycle, back_to_back
from gpu_kernels import catalog, launch

#: Samples that one process takes of a configuration: always as many, so that stored samples fall into their processes.
SAMPLES = 10


class _Timed:
    """Seconds a launch, read on the GPU.

    A subclass gives its axes, and says in `work` what a point on them launches.
    """

    # asv's protocol: a sample is one call, which is one replay; two processes, so that their spread counts.
    number = 1
    rounds = 2
    repeat = SAMPLES
    warmup_time = 0.01
    timeout = 120.0

    #: Whether a single pair of buffers stays in the L2 cache; else each launch goes to DRAM.
    in_l2: ClassVar[bool] = False

    params: ClassVar[list[list[Any]]]
    param_names: ClassVar[list[str]]

    timer: EventClock
    _sample: TimedWork | None = None
    _control: TimedWork

    def work(self, *params: Any) -> Work:
        """What the configuration `params` launches."""
        raise NotImplementedError("a subclass says what is launched")

    @staticmethod
    def instrument(cycle: Cycle) -> TimedWork:
        """What a sample runs, of the kernel as of the control: launches back to back, or as a subclass says."""
        return back_to_back(cycle)

    def setup_cache(self) -> str:
        """Compile everything once, in parallel; return the folder that lives as long as this run of asv."""
        prebuild.for_device()
        return str(Path.cwd())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, run_folder: str, *params: Any) -> None:
        """Prepare and verify the configuration, once a process; time the control. asv calls it before every sample."""
        if self._sample is None:
            device.require()
            experiment = Experiment(self.work(*params), in_l2=self.in_l2)
            experiment.verify(Path(run_folder))
            sample = self.instrument(experiment.launches)
            self._control = self.instrument(experiment.copies)
            self._held_back: set[str] = set()
            self.timer = EventClock(sample)
            self._sample = sample  # last: from now on the configuration is ready
        self._control()
        self._copy_seconds = self._control.seconds()
        self.timer.reset()

    def teardown(self, run_folder: str, *params: Any) -> None:
        """Note the sample beside its control, and whether the GPU held itself back. asv calls it after every sample."""
        if self._sample is None or self.timer.last is None:
            return  # skipped or failed
        readings.note(Path(run_folder), type(self).__name__, params, self.timer.last, self._copy_seconds)
        for reason in clocks.now():
            if reason not in self._held_back:
                self._held_back.add(reason)
                remarks.held_back(reason, params)

    def sample(self, run_folder: str, *params: Any) -> float:
        """Take one sample as asv does, without asv; return its seconds a launch."""
        self.setup(run_folder, *params)
        self.timer()
        self.replay()
        seconds = self.timer()
        self.teardown(run_folder, *params)
        return seconds

    def replay(self) -> None:
        """Start a sample; the clock waits for it."""
        assert self._sample is not None, "setup comes first"
        self._sample()


def kernel_work(name: str, dtype: str, flag_set: str, **arguments: int) -> Work:
    """The work of launching a kernel of the catalog.

    Raises
    ------
    NotImplementedError : the installed commit knows no such kernel, dtype or flag set.
    """
    with lacking.skipped():
        kernel = catalog.get(name)
        function = launch.load(kernel, dtype, flag_set)
    remarks.machine_code(function.cubin.sha256, name, dtype, flag_set, launch.current_arch())
    output_shape, input_shape = kernel.arrays(**arguments)
    title = ", ".join([name, dtype, flag_set, *(f"{key}={value}" for key, value in arguments.items())])
    return Work(
        name=title,
        identity=f"{title} {function.cubin.sha256} {kernel.geometry(**arguments)}",
        dtype=dtype,
        output_shape=output_shape,
        input_shape=input_shape,
        useful_bytes=kernel.useful_bytes(dtype, **arguments),
        launch=lambda output, input, stream: function(output, input, stream=stream, **arguments),
        reference=lambda before, source: kernel.reference(before, source, **arguments),
    )
