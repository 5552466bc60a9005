# SPDX-License-Identifier: Apache-2.0
"""The checks themselves: each must find its own bad sample and stay silent on the good one."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import layers
import text
import tools

C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GOOD = {
    "lib/base/a.h": C,
    "lib/base/a.c": C + '#include "base/a.h"\n\n#include <stdio.h>\n',
    "lib/net/b.c": C + '#include "base/a.h"\n\n#include <unistd.h>\n',
    "hub/c.c": C + '#include "base/a.h"\n#include "http/d.h"\n',
    "lib/http/d.h": C,
    "run.sh": "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n",
    "say.c": C + "/* strcpy( */\nstatic const char *s = \"sprintf(\";\n",
}
# (check, file, content, part of what must be said)
BAD = [
    (layers.check_includes, "lib/net/x.c", C + '#include "http/d.h"\n', "may not include lib/http"),
    (layers.check_includes, "lib/base/x.c", C + '#include "hub/c.h"\n', "does not exist"),
    (layers.check_includes, "hub/x.c", C + "#include <openssl/ssl.h>\n", "may stand in"),
    (layers.check_includes, "lib/net/x.c", C + "#include <yaml.h>\n", "may stand in"),
    (layers.check_includes, "lib/net/x.c", C + "#include <curl/curl.h>\n", "not in the table"),
    (layers.check_includes, "lib/kube/x.c", C + "#include <sys/socket.h>\n", "does no I/O"),
    (layers.check_own_header_first, "lib/base/a.c", C + '#include <stdio.h>\n#include "base/a.h"\n',
     "first include"),
    (layers.check_circles, "lib/base/a.h", C + '#include "base/x.h"\n', "circle"),
    (layers.check_table, "lib/attic/x.c", C, "not in the table"),
    (text.check_spdx, "lib/base/x.c", "int x;\n", "SPDX"),
    (text.check_spdx, "tool", "#!/bin/bash\necho\n", "SPDX"),
    (text.check_sizes, "hub/x.c", C + "\n" * 600, "601 lines"),
    (text.check_sizes, "hub/x.c", C + '#include "base/a.h"\n' * 13, "13 includes"),
    (text.check_functions, "hub/x.c", C + "void f(void)\n{\n" + "    x();\n" * 61 + "}\n", "61 lines"),
    (text.check_banned, "hub/x.c", C + "void f(char *s)\n{\n    strcpy(s, s);\n}\n", "strcpy"),
    (text.check_words, "docs/x.md", "see /wo" + "rk/main\n", "does not belong"),
    (tools.check_format, "hub/x.c", C + "int   x;\n", "clang-format"),
]
VARIABLES = """static int counter;
static const int limit = 3;
static const char *const names[] = {"a", 0};
int next(int i);
int next(int i)
{
    return counter++ + limit + names[i][0];
}
"""


# What a test run may leave, and what ./dev test must make of it.
RESULTS = {
    "ctest-release.xml": """<testsuite><testcase name="a" status="run"/>
        <testcase name="b" status="fail"><failure message=""/></testcase>
        <testcase name="c" status="notrun"><skipped message="SKIP"/></testcase></testsuite>""",
    "pytest-real-1.33.xml": """<testsuites><testsuite><testcase classname="t" name="d"/>
        <testcase classname="t" name="e"><error message="set-up"/></testcase>
        <testcase classname="t" name="f"><skipped message="no Go"/></testcase></testsuite></testsuites>""",
    "pytest-cut.xml": "<testsuites><testcase",
    "noted.tsv": "demo\tpass\t\nlint\tfail\texit code 1\n",
}


def write(root, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def in_sample(project, files, run):
    folder = Path(tempfile.mkdtemp(prefix="kuberelay-lint-"))
    try:
        shutil.copy(project / ".clang-format", folder)
        write(folder, files)
        return run(folder)
    finally:
        shutil.rmtree(folder)


def check_checks(project):
    """Complaints about the checks."""
    for check in {c for c, *_ in BAD}:
        for finding in in_sample(project, GOOD, lambda r: list(check(r))):
            yield f"tests/lint/selftest.py:1: {check.__name__} on a good sample: {finding}"
    for check, name, content, says in BAD:
        files = {**GOOD, "lib/base/x.h": C + '#include "base/a.h"\n', name: content}
        found = in_sample(project, files, lambda r: list(check(r)))
        if not any(says in finding for finding in found):
            yield f"tests/lint/selftest.py:1: {check.__name__} did not find `{says}` in {name}: {found}"
    yield from in_sample(project, RESULTS, lambda r: list(check_tally(project, r)))
    yield from in_sample(project, {"build/release/x.c": VARIABLES},
                         lambda r: list(check_variables_check(r)))


def check_variables_check(root):
    folder = root / "build/release"
    subprocess.run(["gcc", "-fPIC", "-c", "x.c", "-o", "x.o"], cwd=folder, check=True)
    subprocess.run(["ar", "cr", "libkr_x.a", "x.o"], cwd=folder, check=True)
    found = list(tools.check_variables(root))
    if len(found) != 1 or "`counter`" not in found[0]:
        yield f"tests/lint/selftest.py:1: check_variables found {found}"


def check_tally(project, folder):
    """The last line and the exit code of the sums."""
    def last_line(*options):
        run = subprocess.run([sys.executable, project / "tests/tally.py", folder, *options],
                             capture_output=True, text=True)
        return run.returncode, run.stdout.splitlines()[-1]

    cases = [((), (1, "3 passed, 4 failed, 2 skipped")), (("--failed",), (0, "4")),
             (("--require-real",), (1, "3 passed, 5 failed, 2 skipped"))]
    for options, want in cases:
        if last_line(*options) != want:
            yield f"tests/tally.py:1: {options} gave {last_line(*options)}, not {want}"
    for name in ("ctest-release.xml", "pytest-real-1.33.xml", "pytest-cut.xml"):
        (folder / name).unlink()
    (folder / "noted.tsv").write_text("demo\tpass\t\n")
    if last_line() != (0, "1 passed, 0 failed, 0 skipped"):
        yield f"tests/tally.py:1: one pass gave {last_line()}"
    (folder / "noted.tsv").unlink()
    if last_line()[0] != 1:
        yield "tests/tally.py:1: no result at all is taken for success"
