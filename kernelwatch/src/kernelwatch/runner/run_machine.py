"""Asv's description of the machine of a run."""

from collections.abc import Mapping
from typing import Any

from asv.machine import Machine, MachineCollection
from asv.util import UserError

from kernelwatch.instrument import machine


def load_machine(options: Mapping[str, Any], device: machine.Gpu | None) -> Machine:
    """Return the description of the machine that the options name, from asv's file of machines or from the system."""
    name = options.get("machine") or Machine.hardcoded_machine_name or machine.default_name(device)
    loaded = Machine()
    try:
        vars(loaded).update(MachineCollection.load(name, _path=options.get("_machine_file")))
    except UserError:
        vars(loaded).update(machine.stable_facts(name, device))
    return loaded


def describe_machine(options: Mapping[str, Any]) -> None:
    """Save the runner's machine in asv's file of machines, so that asv itself stores results under the same name."""
    described = load_machine(options, machine.find_gpu())
    MachineCollection.save(described.machine, vars(described), _path=options.get("_machine_file"))
    Machine.hardcoded_machine_name = described.machine
