# SPDX-License-Identifier: Apache-2.0
"""What can be seen by reading the files: licence lines, sizes, calls that are banned, words that do not
belong into the project."""

import re
import subprocess
from pathlib import Path

import layers

FILE_MAX = 600
FUNCTION_MAX = 60
TEST_FUNCTION_MAX = 100  # tables of cases
INCLUDES_MAX = 12
SPDX = "SPDX-License-Identifier: Apache-2.0"
NEEDS_SPDX = {".c", ".h", ".py", ".sh", ".cmake", ".txt", ".yaml", ".yml", ".proto", ".go", ".mod", ".in",
              ".md", ".conf", ".cfg", ".tpl"}
NEEDS_SPDX_BY_NAME = {"Containerfile", ".dockerignore"}
WITHOUT_SPDX = re.compile(r"LICENSE|.*/corpus/.*|tests/.*/data/.*")

# They overrun, or take their size from a peer.
BANNED = re.compile(r"\b(strcpy|stpcpy|strcat|sprintf|vsprintf|gets|alloca|tmpnam|mktemp)\s*\(")
# They cannot report errors, or keep hidden state: not in product code.
BANNED_IN_PRODUCT = re.compile(r"\b(atoi|atol|atoll|atof|strtok|gmtime|localtime|ctime|asctime|rand|srand|"
                               r"gethostbyname|setenv|putenv|strerror_r)\s*\(")
# Each with one letter in brackets, so that this list does not find itself.
FOREIGN_WORDS = re.compile(
    r"/w[o]rk/(main|shared|\.library)|(proxy|sum)\.gol[a]ng\.org|registry\.npmj[s]\.org|pyp[i]\.org|"
    r"files\.pythonhoste[d]\.org|crate[s]\.io|deb\.debia[n]\.org|security\.debia[n]\.org|this workplac[e]|"
    r"helper sessio[n]|co-authored-b[y]|fidelity\.m[d]|security\.m[d] section|design\.m[d]|style\.m[d]|"
    r"field-cases\.m[d]", re.IGNORECASE)


def project_files(root):
    """What git tracks or would track; without git, everything that is not made by a build."""
    try:
        listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                                 capture_output=True, text=True, check=True).stdout
        names = [Path(n) for n in listing.splitlines()]
    except (OSError, subprocess.CalledProcessError):
        names = [p.relative_to(root) for p in root.rglob("*") if p.is_file()]
    made = {"build", "dist", ".git", ".cache", "__pycache__"}
    return sorted(n for n in names if (root / n).is_file() and not made & set(n.parts))


def c_files(root):
    return [p for p in project_files(root) if p.suffix in (".c", ".h")]


def is_unit_test(path):
    """These copy their own literals only."""
    return path.parts[:2] == ("tests", "unit")


def read_lines(root, path):
    return (root / path).read_text(errors="replace").splitlines()


def check_spdx(root):
    for path in project_files(root):
        if WITHOUT_SPDX.fullmatch(str(path)):
            continue
        lines = read_lines(root, path)[:2]
        script = bool(lines) and lines[0].startswith("#!")
        if path.suffix not in NEEDS_SPDX and path.name not in NEEDS_SPDX_BY_NAME and not script:
            continue
        if len(lines) <= script or SPDX not in lines[script]:
            yield f"{path}:1: the first line must be the SPDX line (scripts: the second)"


def check_sizes(root):
    for path in c_files(root):
        lines = read_lines(root, path)
        if len(lines) > FILE_MAX:
            yield f"{path}:{len(lines)}: {len(lines)} lines, at most {FILE_MAX}"
        if str(path.parent) in layers.ROOMS:
            count = len(layers.includes(root, path))
            if count > INCLUDES_MAX:
                yield f"{path}:1: {count} includes, at most {INCLUDES_MAX}"


def functions(lines):
    """(line, length) of each function, by the brace style that clang-format keeps."""
    start = None
    for n, line in enumerate(lines, 1):
        if line == "{":
            start = n
        elif line == "}" and start is not None:
            yield start, n - start - 1
            start = None


def check_functions(root):
    for path in c_files(root):
        for line, length in functions(read_lines(root, path)):
            limit = TEST_FUNCTION_MAX if is_unit_test(path) else FUNCTION_MAX
            if length > limit:
                yield f"{path}:{line}: a function of {length} lines, at most {limit}"


def code_only(text):
    """The text with comments and string contents blanked, line breaks kept."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def check_banned(root):
    for path in c_files(root):
        code = code_only((root / path).read_text(errors="replace"))
        for n, line in enumerate(code.splitlines(), 1):
            match = BANNED.search(line) if not is_unit_test(path) else None
            if match is None and str(path.parent) in layers.ROOMS:
                match = BANNED_IN_PRODUCT.search(line)
            if match:
                yield f"{path}:{n}: {match[1]} is banned"


def check_words(root):
    for path in project_files(root):
        for n, line in enumerate(read_lines(root, path), 1):
            match = FOREIGN_WORDS.search(line)
            if match:
                yield f"{path}:{n}: `{match[0]}` does not belong into the project"


def report(root):
    """How long functions and files are: for people, not a check."""
    lengths = sorted(length for p in c_files(root) if str(p.parent) in layers.ROOMS
                     for _, length in functions(read_lines(root, p)))
    sizes = sorted(len(read_lines(root, p)) for p in c_files(root)
                   if str(p.parent) in layers.ROOMS and p.suffix == ".c")
    if not lengths or not sizes:
        return "no product code"
    return (f"{len(lengths)} functions, median {lengths[len(lengths) // 2]} lines, "
            f"p95 {lengths[len(lengths) * 95 // 100]}, longest {lengths[-1]}; "
            f"{len(sizes)} .c files, median {sizes[len(sizes) // 2]} lines, longest {sizes[-1]}")


CHECKS = [check_spdx, check_sizes, check_functions, check_banned, check_words]
