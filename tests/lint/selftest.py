# SPDX-License-Identifier: Apache-2.0
"""The checks themselves: each must find its own bad sample and stay silent on the good one."""

import shutil
import subprocess
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
    yield from in_sample(project, {"build/release/x.c": VARIABLES},
                         lambda r: list(check_variables_check(r)))


def check_variables_check(root):
    folder = root / "build/release"
    subprocess.run(["gcc", "-fPIC", "-c", "x.c", "-o", "x.o"], cwd=folder, check=True)
    subprocess.run(["ar", "cr", "libkr_x.a", "x.o"], cwd=folder, check=True)
    found = list(tools.check_variables(root))
    if len(found) != 1 or "`counter`" not in found[0]:
        yield f"tests/lint/selftest.py:1: check_variables found {found}"
