"""Who may talk to a fleet: those who have its certificate. `kernelwatch fleet-certificate FOLDER` makes one.

Whoever can talk to Dask's scheduler or to a worker can run programs there, so a fleet is encrypted. One certificate
with its key serves the driver, the scheduler and all workers: it is its own authority, and nobody else's is believed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Files of the folder.
CERTIFICATE, KEY = "cert.pem", "key.pem"

_OPENSSL = (
    *("openssl", "req", "-x509", "-nodes", "-days", "365", "-subj", "/CN=coalescing-watch-fleet"),
    *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
)

_MAKE = "kernelwatch fleet-certificate FOLDER makes a certificate; copy the folder to every host, and say --tls FOLDER"


class UnsafeError(ValueError):
    """An address is not encrypted, or there is no certificate for it."""


def make(folder: Path) -> None:
    """Make a certificate and its key, which only this user can read. Those that are there stay.

    Raises
    ------
    UnsafeError
        There is no openssl, or it fails.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = folder / CERTIFICATE, folder / KEY
    if certificate.exists() and key.exists():
        return
    command = [*_OPENSSL, "-keyout", str(key), "-out", str(certificate)]
    try:
        os.close(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600))
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise UnsafeError("openssl not found, which makes the certificate; install it") from None
    except subprocess.CalledProcessError as error:
        raise UnsafeError(f"openssl made no certificate in {folder}: {error.stderr.strip()[-300:]}") from None


def words(folder: Path) -> list[str]:
    """Return the options of Dask's scheduler."""
    certificate, key = str(folder / CERTIFICATE), str(folder / KEY)
    return ["--protocol=tls", f"--tls-ca-file={certificate}", f"--tls-cert={certificate}", f"--tls-key={key}"]


def security(address: str, folder: Path | None, *, insecure: bool = False) -> Any:
    """Return Dask's settings for the connection to a scheduler.

    Parameters
    ----------
    address : str
        The scheduler's.
    folder : Path, optional
        Of the certificate; else what Dask's own configuration names.
    insecure : bool
        Whether an address without encryption was asked for by name.

    Raises
    ------
    UnsafeError
        The address is not encrypted, and that was not asked for; or there is no certificate.
    """
    from distributed import Security  # noqa: PLC0415 -- help needs no Dask

    if not address.startswith("tls://"):
        if insecure:
            return Security()
        raise UnsafeError(
            f"{address} is not encrypted: whoever reaches its port can run programs on all hosts of the fleet. Let the "
            f"scheduler be at tls://HOST:PORT ({_MAKE}), or say --insecure-tcp where nobody else reaches the network"
        )
    if folder is None:
        configured: Any = Security(require_encryption=True)
        if not (configured.tls_ca_file and configured.tls_client_cert and configured.tls_worker_cert):
            raise UnsafeError(f"{address} needs a certificate: {_MAKE}")
        return configured
    certificate, key = folder / CERTIFICATE, folder / KEY
    for path in (certificate, key):
        if not path.is_file():
            raise UnsafeError(f"{path} is no file: {_MAKE}")
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_{what}": str(path) for role in roles for what, path in (("cert", certificate), ("key", key))}
    return Security(require_encryption=True, tls_ca_file=str(certificate), **files)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `security` takes."""
    parser.add_argument("--tls", type=Path, metavar="FOLDER", help="of the certificate that all hosts share")
    parser.add_argument("--insecure-tcp", action="store_true", help="let the scheduler's address be without encryption")


def main(given: Sequence[str] | None = None) -> None:
    """Make a certificate."""
    parser = argparse.ArgumentParser(description="Make the certificate of a fleet.")
    parser.add_argument("folder", type=Path, help="where cert.pem and key.pem are to be")
    folder = parser.parse_args(given).folder
    try:
        make(folder)
    except (UnsafeError, OSError) as error:
        sys.exit(str(error))
    print(f"{folder} has the certificate: copy it to every host of the fleet, over a way that nobody else reads")
