"""``ptxcount pin`` and ``check`` in a repository: findings and exit codes after changes."""

import pytest

from ptxcount.command_line import main
from tests.ptxcount.gate_repository import FELL, LAUNCH, ROSE, TWO_BLOCKS, Change, Repository, kernel, launch, lock, pin

BODY = "if (i < n) out[i] = 2 * in[i * STRIDE];"
NAMED = f'{LAUNCH}name = "one"\n'


def _behind(comment: str, stride: int = 2) -> Change:
    return kernel(stride, ("STRIDE];", f"STRIDE];  // ptxcount: {comment}"))


def _limits(text: str) -> Change:
    return launch(f"{LAUNCH}limits = {{ {text} }}\n")


NEW = "scale.cu:4: error: PC005 no counts are pinned; run ptxcount pin; a launch without a name is identified by its "
GONE = (
    "ptxcount.lock:1: error: PC008 pinned, but no longer in ptxcount.toml; run ptxcount pin "
    "[launch scale.cu: phys::scale<float> <<<("
)
RACE = "__shared__ int s; s = i; if (i < n) out[i] = s + 2 * in[i * STRIDE];"
LOCAL = "float a[8]; for (int j = 0; j < 8; j++) a[(i + j) % 8] = j; out[i] = a[n % 8] + 2 * in[i * STRIDE];"
TILE = f"__shared__ T s[256]; s[threadIdx.x] = n; __syncthreads();\n i += s[threadIdx.x * 2 % 256];\n {BODY}"
MANY = " + ".join(f"in[{n}]" for n in range(16)) + " +\n2 * in["
BANKS = "bank_conflicts = 31, shared_load_bank_conflicts_per_request = 0.4"
TABLE = ("namespace phys", "__constant__ int table[64] = {1}; namespace phys")
CONSTANT = "out[i] = table[i % 32] + 2 * in[i * STRIDE];"
#: Successive changes, exit code of check, and starts of its lines. ``kernel(n)`` makes 32 warps load every n-th float,
#: which are 4 * n sectors per request.
CHECKS: list[tuple[list[Change], int, list[str]]] = [
    # moved lines, higher and lower counts, another compiler, a race
    ([kernel(2, ("namespace", "// one\n\nnamespace"), ("    if (i", " // two\n\tif  (i"))], 0, []),
    ([kernel(8)], 1, [f"{ROSE}; scale.cu changed. Why: "]),
    ([kernel(1)], 0, [f"{FELL}; scale.cu changed [launch scale<float>]"]),
    ([kernel(1), pin(), kernel(2)], 1,
     ["scale.cu:6: error: PC003 global load sectors rose from 128 to 256 (4 to 8 per request, ideal 4); scale.cu "
      "changed. Why: ptxcount check --advise. Intended: ptxcount pin --accept [launch scale<float>]"]),
    ([kernel(2, ("2 * in", "3 * in"))], 0, []),  # at equal cost
    ([kernel(8, ("2 * in", "3 * in"))], 1, [f"{ROSE.replace(' (8', ' in edited lines (8')}; scale.cu changed. Why"]),
    ([lock('"nvcc": "', '"nvcc": "1')], 0, []),
    ([lock('"nvcc": "', '"nvcc": "1'), kernel(8)], 1,
     [ROSE, "ptxcount.lock:1: note: PC010 counts were pinned with nvcc 113.0.88, but nvcc is 13.0.88 now"]),
    # two launches of a kernel, in this row and the next
    ([kernel(2, (BODY, RACE)), launch(LAUNCH + TWO_BLOCKS), pin("--accept")], 0, ["scale.cu:6: warning: PC006"]),
    ([launch(LAUNCH + TWO_BLOCKS), pin(), kernel(8)], 1,
     [f"{ROSE}; scale.cu changed. Why: ",
      "scale.cu:6: error: PC003 global load sectors rose from 128 to 512 (8 to 32 per request, ideal 4); scale.cu"]),
    ([kernel(2, (BODY, LOCAL))], 1,  # an array in local memory
     ["scale.cu:4: error: PC003 stack frame bytes rose from 0 to 32; scale.cu changed. Why: ",
      *(f"scale.cu:6: error: PC003 local {amount} rose from 0 to " for amount in
        ("load requests", "load sectors", "store requests", "store sectors"))]),
    ([kernel(2, TABLE, (BODY, CONSTANT))], 1,  # a constant table, read by lane
     ["scale.cu:6: error: PC003 constant load addresses rose from 0 to 1024 in edited lines (32 per request)",
      "scale.cu:6: error: PC003 constant load requests rose"]),
    ([kernel(2, TABLE, (BODY, CONSTANT.replace("i %", "n %")))], 0, []),  # all lanes read one address
    ([_limits("constant_addresses = 0"), kernel(2, TABLE, (BODY, CONSTANT)), pin("--accept")], 1,
     ["scale.cu:6: error: PC001 constant_addresses is 1024; at most "]),
    ([_limits("cluster_load_sectors = 0, cluster_atomic_requests = 0, local_load_requests = 0")], 0, []),  # absent
    ([_limits("constant_addresses_per_request = 32"), kernel(2, TABLE, (BODY, CONSTANT)), pin("--accept")], 0, []),
    ([kernel(2, TABLE, (BODY, CONSTANT + "  // ptxcount: addresses <= 16")), pin("--accept")], 1,
     ["scale.cu:6: error: PC002 addresses per request are 32; at most 16 "]),
    ([launch(f'{LAUNCH}name = "doubled"\n'), kernel(8)], 1, [f"{ROSE}; scale.cu changed"]),  # pinned without a name
    ([launch(NAMED), pin(), launch(NAMED.replace("random(1)", "random(2)"))], 0, []),  # another array, the same counts
    # limits of a launch and of a line
    ([_limits("load_sectors_per_request = 8, bank_conflicts = 0, stack_frame_bytes = 0")], 0, []),
    ([_limits('store_sectors = "1 x ideal", load_sectors_per_request = "2 x ideal"')], 0, []),
    ([_limits("load_sectors_per_request = 7.9")], 1, [
        "scale.cu:6: error: PC001 load_sectors_per_request is 8; at most 7.9 are allowed; at this line it is 8 "
        "[launch scale<float>]"]),
    ([_limits('load_sectors_per_request = "1.5 x ideal"')], 1, [
        "scale.cu:6: error: PC001 load_sectors_per_request is 8; at most 6 are allowed"]),
    ([_limits("thread_instructions = 9")], 1, ["scale.cu:1: error: PC001 thread_instructions is "]),  # of all lines
    ([kernel(2, (BODY, TILE)), pin("--accept"), _limits(BANKS)], 1, [
        "scale.cu:7: error: PC001 bank_conflicts is 32; at most 31 are allowed [launch scale",
        "scale.cu:7: error: PC001 shared_load_bank_conflicts_per_request is 1; at most 0.4 are allowed; at this "]),
    ([_behind("sectors <= 8, lines <= 2, requests <= 32")], 0, []),
    ([_behind("sectors <= 2 x ideal")], 0, []),
    ([launch(LAUNCH + TWO_BLOCKS), pin(), _behind("sectors <= 7.9")], 1,
     [f"scale.cu:6: error: PC002 sectors per request are 8; at most 7.9 are allowed [launch scale<float> (launch {n})]"
      for n in (1, 2)]),
    ([_behind("sectors <= 1.5 x ideal")], 1, ["scale.cu:6: error: PC002 sectors per request are 8; at most 6 are"]),
    ([_behind("requests <= 31")], 1, ["scale.cu:6: error: PC002 requests are 32; at most 31 are allowed"]),
    ([_behind("lines <= 1")], 1, ["scale.cu:6: error: PC002 lines per request are 2; at most 1 is allowed"]),
    ([_behind("wavefronts <= 4")], 1, ["scale.cu:6: error: PC007 wavefronts <= 4 has no effect"]),  # of shared memory
    ([kernel(2, (BODY, LOCAL.replace("out", " // ptxcount: sectors <= 1 x ideal\nout"))), pin("--accept")], 1,
     ["scale.cu:6: error: PC007 sectors <= 1 x ideal has no effect"]),  # local memory has no ideal
    # waivers
    ([_behind("ignore[rise] the data is small", 8)], 0, []),
    ([kernel(8, ("    if", "// ptxcount: ignore[PC003] the data is small\n// more\n\n    if"))], 0, []),
    ([_behind("ignore[rise]", 8)], 1, ["scale.cu:6: error: PC007 ignore[rise] has no reason; write the reason after"]),
    ([_behind("ignore[rise, bank-conflict] of use", 8)], 1,
     ["scale.cu:6: error: PC007 ignore[bank-conflict] matches no finding"]),
    ([_behind("ignore[rises] of use")], 2, ["scale.cu:6: error: PC009 DirectiveError: ignore[rises] names no finding"]),
    ([_behind("sector < 4")], 2, ["scale.cu:6: error: PC009 DirectiveError: 'sector < 4' is no directive; write"]),
    ([_behind("sector <= 4")], 2, ["scale.cu:6: error: PC009 DirectiveError: limit 'sector' names no count; "]),
    ([kernel(2, ("    if", "    // ptxcount: sector <= 4\n    if"))], 2,
     ["scale.cu:6: error: PC009 DirectiveError: limit 'sector' names no count; "]),
    ([_behind("requests <= 2 x ideal")], 2, ["scale.cu:6: error: PC009 DirectiveError: requests have no ideal; "]),
    ([_behind("ignore[PC003] of use")], 1, ["scale.cu:6: error: PC007 ignore[PC003] matches no finding any more"]),
    # a faulty kernel fails; one that cannot be counted has no counts
    ([launch(LAUNCH.replace("8192", "100"))], 1, ["scale.cu:6: error: PC006 access out of bounds "]),
    # without counts of a launch, no waiver is reported as useless
    ([launch(LAUNCH + LAUNCH.replace('"scale.cu"', '"gone.cu"')), _behind("ignore[rise] it is small")], 2,
     ["ptxcount.toml:7: error: PC009 LaunchError: /"]),
    ([launch(LAUNCH.replace("int32:1024", "int32:0"))], 2, [
        "ptxcount.toml:1: error: PC009 the launch accesses no memory, so there is nothing to check"]),
    # another grid, type or cluster makes another launch
    ([launch(TWO_BLOCKS)], 2, [NEW, GONE]),
    ([launch(LAUNCH.replace("scale<float", "scale<unsigned").replace("float32", "uint32"))], 2, [NEW, GONE]),
    ([launch(LAUNCH + "cluster = [2]\n")], 2, [NEW, GONE]),
    ([launch(LAUNCH + "cluster = 3\n")], 2, ["ptxcount.toml:1: error: PC009 LaunchError: "]),
    ([launch(LAUNCH + LAUNCH.replace("scale<float>", "scala"))], 2,
     ["ptxcount.toml:7: error: PC009 LaunchError: there is no kernel 'scala'; the file has none; of a template, n"]),
    ([lambda repo: (repo.folder / "ptxcount.lock").unlink()], 2, [
        "ptxcount.toml:1: error: PC005 no counts are pinned; run ptxcount pin, and commit ptxcount.lock"]),
    ([lambda repo: (repo.folder / "ptxcount.lock").unlink(), kernel(8, ("2 * in[", MANY)),
      _limits('load_sectors_per_request = "1.1 x ideal"')], 2,  # a broadcast does not offset another access
     ["scale.cu:7: error: PC001 load_sectors_per_request is ", "ptxcount.toml:1: error: PC005 "]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "code", "messages"), CHECKS)
def test_check_lists_findings(changes: list[Change], code: int, messages: list[str], repository: Repository) -> None:
    for change in changes:
        change(repository)
    exit_code, lines = repository.run("check")
    assert (exit_code, [line[: len(begins)] for line, begins in zip(lines, messages, strict=True)]) == (code, messages)


#: Text of ptxcount.toml, line in the error, and reason.
REFUSED = [
    (LAUNCH.replace("block = [256]", "blocks = 4"), 1, "launch 1: it has the unknown key `blocks`"),
    (LAUNCH.replace("[256]", '"256"'), 1, "launch 1: block: Expected `int | array`, got `str`"),
    (LAUNCH.replace("grid = 4", ""), 1, "launch 1: it lacks the key `grid`"),
    (LAUNCH.replace("grid = 4", "grid = [1, 1, 1, 1]"), 1, "launch 1: grid: Expected `array` of length <= 3"),
    (LAUNCH.replace("grid = 4", "grid = 0"), 1, "launch 1: grid: Expected `int` >= 1"),
    (f"{LAUNCH}\n{LAUNCH}variables = [[1]]", 8, "launch 2: variables[0]: Expected `str`, got `array`"),
    (LAUNCH.replace("scale.cu", "scale\\u0000.cu"), 1, "launch 1: file: Expected `str`, not empty and without NUL"),
    ("launch = [1]", 1, "launch 1: Expected `table`, got `int`; the keys of a launch are"),
    (f"{LAUNCH}grid = 3", 7, "PC009 Cannot overwrite a value (at "),
    (f"launch = {'[' * 5000}{']' * 5000}", 1, "nested too deeply"),
    (f"{LAUNCH}limits = {{ load_sectors = nan }}", 1, "limit load_sectors is nan; give a finite number"),
    (f"{LAUNCH}limits = {{ sector = 1 }}", 1, "limit 'sector' names no count; did you mean 'load_sectors'?"),
    (f"{LAUNCH}limits = {{ nonsense = 1 }}", 1, "limit 'nonsense' names no count; allowed are threads, load_requests"),
    (f"{LAUNCH}limits = {{ stack_frame_bytes_per_request = 1 }}", 1,
     "stack_frame_bytes has no value per request; remove _per_request"),
    (f'{LAUNCH}name = "\\u001b[31m"', 1, "the name '\\x1b[31m' has unprintable characters"),
    (f'{LAUNCH}name = "x"\n{LAUNCH}name = "x"', 1, "2 launches have the name 'x'"),
    ("launch = 1", 1, "the file has launch; it must have only tables [[launch]]"),
    (LAUNCH.replace("[[launch]]", "[[launches]]"), 1,
     "the file has launches; it must have only tables [[launch]], at least one"),
    ("{", 1, "PC009 Invalid statement (at line 1"),
    ("", 1, "the file has nothing; it must have only tables [[launch]], at least one"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "number", "message"), REFUSED)
def test_invalid_launches_are_one_error(text: str, number: int, message: str, repository: Repository) -> None:
    repository.write_launches(text)
    code, (line,) = repository.run("check")
    assert (code, line.partition(" PC009 ")[0]) == (2, f"ptxcount.toml:{number}: error:")
    assert message in line


@pytest.mark.parametrize(("folder", "problem"), [("scale.cu", "is a file"), ("none", "does not exist")])
def test_missing_folder_is_an_error(folder: str, problem: str, repository: Repository) -> None:
    code, (line,) = repository.run("check", folder)
    message = f"LaunchError: {folder} {problem}; pass the folder with ptxcount.toml"
    assert (code, line) == (2, f"{folder}/ptxcount.toml:1: error: PC009 {message}")


def test_changed_restricts_advice_to_changed_counts(repository: Repository) -> None:
    def list_advice(*words: str) -> list[str]:
        """List file, line and code of each finding that advises."""
        lines = repository.run("check", *words)[1]
        return [line[: len("scale.cu:6: warning: PC101")] for line in lines if " PC1" in line]

    repository.git("init", "-q")
    repository.git("add", "scale.cu", "ptxcount.toml")
    repository.git("commit", "-qm", "no lock file")  # so all counts are new
    assert list_advice("--changed", "HEAD") == ["scale.cu:6: warning: PC101"]
    repository.git("add", "ptxcount.lock")
    repository.git("commit", "-qm", "one")
    assert list_advice("--advise") == ["scale.cu:6: warning: PC101"]
    assert list_advice("--changed", "HEAD") == []
    repository.write_kernel(2, ("2 * in", "3 * in"))
    assert list_advice("--changed", "HEAD") == []
    index = "blockIdx.x * blockDim.x + threadIdx.x"
    repository.write_kernel(2, (index, "threadIdx.x * 4 + blockIdx.x"))  # line 4, which changes the counts of line 6
    for options in ((), ("--advise",)):
        advice = list_advice("--changed", "HEAD", *options)
        assert advice == ["scale.cu:6: warning: PC101", "scale.cu:6: warning: PC102"]  # of the load and the store


def test_unknown_revision_is_refused(repository: Repository) -> None:
    repository.git("init", "-q")
    code, (refusal,) = repository.run("check", "--changed", "gone")
    assert code == 2
    assert "PC009 LaunchError: git cannot read revision gone: fatal: " in refusal


def test_compile_error_is_reported_once(repository: Repository) -> None:
    repository.write_launches(LAUNCH + TWO_BLOCKS)
    repository.write_kernel(2, ("2 * in[", "2 * inn["))
    for command in ("pin", "check"):
        code, lines = repository.run(command)
        (finding,) = [line for line in lines if " PC0" in line]
        assert code == 2
        assert finding.startswith("scale.cu:6: error: PC009 CompileError: nvcc failed: ")


@pytest.mark.parametrize(("form", "stream"), [("text", "out"), ("github", "err")])
def test_success_is_a_line(form: str, stream: str, repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """GitHub reads annotations from standard output."""
    assert main(["check", str(repository.folder), f"--format={form}"]) == 0
    assert capsys.readouterr()._asdict() == {"out": "", "err": "", stream: "1 launch passed\n"}


def test_suggested_commands_name_the_folder(repository: Repository) -> None:
    (repository.folder / "ptxcount.lock").unlink()
    project, parent = repository.folder, repository.folder.parent
    name = project.name
    repository.folder = parent
    assert f"run ptxcount pin {name}, and" in repository.run("check", name)[1][0]
    assert repository.run("pin", name)[0] == 0
    source = project / "scale.cu"
    source.write_text(source.read_text().replace("#define STRIDE 2", "#define STRIDE 1"))
    assert f"{name}/{FELL}".replace("ptxcount pin", f"ptxcount pin {name}") in repository.run("check", name)[1][0]


def test_control_characters_are_not_printed(repository: Repository) -> None:
    repository.write_kernel(2, ("int i =", "in\x1b[31mt i ="))
    for form in ("text", "github", "json", "sarif"):
        code, lines = repository.run("check", "--format", form)
        assert code == 2
        assert "".join(lines).isprintable()
