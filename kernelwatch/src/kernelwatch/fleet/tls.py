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
            f"{address} is not encrypted: whoever reaches its port can run programs on all hosts of the fleet. Let "
            "the scheduler be at tls://HOST:PORT (docs/fleet.md); say --insecure-tcp if nobody else reaches the network"
        )
    files: dict[str, str] = {}
    if folder is not None:
        certificate, key = folder / CERTIFICATE, folder / KEY
        for path in (certificate, key):
            if not path.is_file():
                raise UnsafeError(f"{path} is no file; in that folder, make a certificate: {OPENSSL}")
        for role in ("client", "scheduler", "worker"):
            files |= {f"tls_{role}_cert": str(certificate), f"tls_{role}_key": str(key)}
        files["tls_ca_file"] = str(certificate)
    found: Any = Security(require_encryption=True, **files)
    if not (found.tls_ca_file and found.tls_client_cert and found.tls_worker_cert):
        raise UnsafeError(f"{address} needs a certificate: say --tls FOLDER, of one that was made with: {OPENSSL}")
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `security` takes."""
    parser.add_argument("--tls", type=Path, metavar="FOLDER", help="of the certificate that all hosts share")
    parser.add_argument("--insecure-tcp", action="store_true", help="let the scheduler's address be without encryption")
