"""Starts a fleet of this host and says which of its ports answer where: `python -m tests.fleet_ports WORK IP...`.

Run in a network namespace of its own, where an address of the host that is not the loopback one can be made up.
"""

from __future__ import annotations

import json
import socket
import sys
from contextlib import closing
from pathlib import Path

import psutil

from kernelwatch.fleet import cluster


def listening() -> list[tuple[str, int]]:
    """Return the addresses at which this process and all below it listen."""
    these = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [each for process in these for each in process.net_connections("inet") if each.status == "LISTEN"]
    return sorted({(each.laddr.ip, each.laddr.port) for each in found})


def answers(address: str, port: int) -> bool:
    """Whether somebody takes a connection."""
    with closing(socket.socket()) as asking:
        asking.settimeout(5)
        return asking.connect_ex((address, port)) == 0


def main() -> None:
    """Print, as JSON, which ports listen and for each address which of them answer."""
    work, *addresses = sys.argv[1:]
    with cluster.embedded(Path(work), 2):
        ports = sorted({port for _, port in listening()})
        print(json.dumps([ports, *([port for port in ports if answers(each, port)] for each in addresses)]))


if __name__ == "__main__":
    main()
