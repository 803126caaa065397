"""Short texts of errors for logs and records: one line, the first compiler error, or a text without its numbers."""

import re
import signal

#: Patterns of compiler errors: with file and line, from nvcc or g++; with file and line, from ptxas; without a line.
_ERRORS = (
    re.compile(r"\S+(?:\(\d+\)|:\d+)(?::\d+)?: (?:\w+ )?error\b.*"),
    re.compile(r"^ptxas \S+, line \d+; (?:fatal|error) *: .*", re.MULTILINE),
    re.compile(r"^(?:\S+: (?:fatal )?error|\w+ (?:fatal|error) *): .*", re.MULTILINE),
)

#: Pattern of a number. Errors of one cause may differ only in numbers.
_NUMBERS = re.compile(r"-?\d[\w.+-]*")

#: Maximum number of characters of a shown error. A data race needs many: it names two source lines with their paths.
_MAX_LENGTH = 1000


def one_line(error: object) -> str:
    """Return an error's text as one printable line of at most _MAX_LENGTH characters."""
    text = "".join(character if character.isprintable() else " " for character in str(error))
    return " ".join(text.split())[:_MAX_LENGTH]


def format_exit(code: int) -> str:
    """Return a phrase on the exit code of a failed process; for a killed one, with the usual cause."""
    advice = "; it was killed, often for lack of memory: use smaller arguments" if code == -signal.SIGKILL else ""
    return f"ended with exit code {code}{advice}"


def first_error(text: str) -> str:
    """Return the first compiler error with file and line in a text, else the first error, else the first line."""
    for pattern in _ERRORS:
        if match := pattern.search(text):
            return match[0]
    return one_line([*text.strip().splitlines(), ""][0])


def blank_numbers(text: str) -> str:
    """Replace each number in a text, with the letters and signs that follow it, by 0."""
    return _NUMBERS.sub("0", text)
