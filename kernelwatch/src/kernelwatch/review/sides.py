"""The two sides of a review: two commits, or two compilers at one commit."""

from dataclasses import dataclass

from kernelwatch.toolchain import releases as compilers


@dataclass(frozen=True)
class ReviewSide:
    """One side of a review: the revision as typed, its full hash, and its compiler (None: the default)."""

    label: str
    commit: str
    compiler: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReviewSides:
    """The two sides of a review: results of one machine in one of asv's environments.

    If two compilers are compared, each side has an environment, and `environment` is that of head. `distance` is the
    distance from base to head, such as "3 commits"; empty if it is 0 or unknown. `where` names the machine. It also
    names the environment if several environments measured both commits.
    """

    machine: str
    environment: str
    base: ReviewSide
    head: ReviewSide
    distance: str = ""
    where: str = ""

    @property
    def base_and_head(self) -> tuple[ReviewSide, ReviewSide]:
        """Base and head."""
        return self.base, self.head

    @property
    def is_of_compilers(self) -> bool:
        """True if two compilers are compared, not two commits."""
        return self.base.compiler != self.head.compiler

    @property
    def measure_command(self) -> str:
        """The command that measures both sides again."""
        if self.is_of_compilers:
            releases = " ".join(side.compiler or compilers.DEFAULT for side in self.base_and_head)
            run = f"{compilers.VARIABLE}=$release asv run --record-samples {self.head.commit[:8]}^!"
            return f"for release in {releases}; do {run}; done"
        return f"kernelwatch measure {self.base.commit[:8]} {self.head.commit[:8]}"
