"""Who may talk to a fleet: those who have its certificate.

Whoever can talk to Dask's scheduler or to a worker can run programs there, so a fleet is encrypted. One certificate
with its key serves the driver, the scheduler and all workers: it is its own authority, and nobody else's is believed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
from pathlib import Path
from typing import Any

#: Files of a certificate's folder.
CERTIFICATE, KEY = "cert.pem", "key.pem"

#: The command that makes them in a folder, for a year. The key is readable by its maker alone.
OPENSSL = (
    "openssl req -x509 -nodes -days 365 -subj /CN=fleet -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
    f"-addext keyUsage=critical,digitalSignature,keyCertSign -keyout {KEY} -out {CERTIFICATE}"
)


class UnsafeError(ValueError):
    """An address is not encrypted, or there is no certificate for it."""


def make(folder: Path) -> None:
    """Make a certificate and its key. Raises UnsafeError if there is no openssl, or it fails."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / KEY).touch(0o600)
    try:
        subprocess.run(shlex.split(OPENSSL), cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or f"{error}; install openssl"
        raise UnsafeError(f"openssl made no certificate in {folder}: {said.strip()[-300:]}") from None


def security(address: str, folder: Path | None) -> Any:
    """Return Dask's settings for the connection to a scheduler at an address, with the certificate of a folder.

    Raises UnsafeError if there is none, or the address is not encrypted.
    """
    from distributed import Security  # noqa: PLC0415 -- help needs no Dask

    if not address.startswith("tls://"):
        raise UnsafeError(
            f"{address} is not encrypted: whoever reaches its port can run programs on all hosts of the fleet. Let "
            "the scheduler be at tls://HOST:PORT (docs/fleet.md)"
        )
    if folder is None:
        raise UnsafeError(f"{address} needs a certificate: say --tls FOLDER, of one that was made with: {OPENSSL}")
    paths = {"cert": folder / CERTIFICATE, "key": folder / KEY}
    for path in paths.values():
        if not path.is_file():
            raise UnsafeError(f"{path} is no file; in that folder, make a certificate: {OPENSSL}")
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_{what}": str(path) for role in roles for what, path in paths.items()}
    return Security(require_encryption=True, tls_ca_file=str(paths["cert"]), **files)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that `security` takes."""
    parser.add_argument("--tls", type=Path, metavar="FOLDER", help="of the certificate that all hosts share")
