# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the rooms of the house, where each third-party header may stand, and no
circles, neither of rooms nor of files."""

import re
from pathlib import Path

# Room -> the rooms that it may include beside itself; bottom first.
ROOMS = {
    "lib/base": [],
    "lib/net": ["lib/base"],
    "lib/http": ["lib/base"],
    "lib/kube": ["lib/base"],
    "certs": ["lib/base"],
    "lib/wire": ["lib/base", "lib/http"],
    "lib/admin": ["lib/base", "lib/net", "lib/http"],
    "agent": ["lib/base", "lib/net", "lib/http", "lib/kube", "certs", "lib/wire", "lib/admin"],
    "hub": ["lib/base", "lib/net", "lib/http", "lib/kube", "certs", "lib/wire", "lib/admin"],
    "signer": ["lib/base", "lib/net", "lib/http", "certs", "lib/wire"],
    "ctl": ["lib/base", "lib/net", "lib/http", "lib/kube", "certs", "lib/wire"],
}

# Third-party header -> the files that may include it.
THIRD_PARTY = {
    r"json-c/": r"lib/base/json\.c",
    r"yaml\.h": r"lib/base/(config|yaml)\.c",
    r"ev\.h": r"lib/net/loop\.c",
    r"ares": r"lib/net/resolve\.c",
    r"openssl/": r"lib/net/tls_\w+\.[ch]|certs/\w+\.[ch]",
    r"nghttp2/": r"lib/http/h2_\w+\.[ch]",
    r"(kuberelay/v1/.*\.pb-c|protobuf-c/.*)\.h": r"lib/wire/(\w+_)?messages\.[ch]",
    r"zstd": r"lib/wire/compress\.c",
    r"xxh": r"lib/wire/digest\.c",
    r"zlib\.h": r"hub/gzip\.c|tests/unit/hub/(gzip|fleet_list)_test\.c",
    r"sqlite3\.h": r"hub/store_sqlite(_\w+)?\.[ch]",
    r"immintrin\.h": r"lib/kube/json_block\.h",
    r"cmocka\.h": r"tests/.*",
}

# C, which every room may use, and POSIX, which those that only compute may not.
C_HEADERS = {
    "assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "setjmp.h", "stdalign.h",
    "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "strings.h", "time.h",
}
POSIX = re.compile(r"(arpa|linux|net|netinet|sys)/\w+\.h|(dirent|fcntl|getopt|netdb|poll|pthread|"
                   r"pwd|sched|signal|spawn|syslog|termios|unistd)\.h")
PURE = {"lib/kube", "lib/http", "lib/wire"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def sources(root):
    """The C files of the rooms, as paths relative to the root."""
    found = []
    for room in ROOMS:
        found += [p for p in sorted((root / room).glob("*.[ch]"))]
    return [p.relative_to(root) for p in found]


def includes(root, path):
    """(line number, quote or angle, name) of each include."""
    lines = (root / path).read_text(errors="replace").splitlines()
    matches = ((n, INCLUDE.match(line)) for n, line in enumerate(lines, 1))
    return [(n, m[1], m[2]) for n, m in matches if m]


def resolve(root, name):
    """An include is written from lib/ or from the root."""
    for candidate in (Path("lib") / name, Path(name)):
        if (root / candidate).is_file():
            return candidate
    return None


def check_foreign(path, name):
    room = str(path.parent)
    for header, files in THIRD_PARTY.items():
        if re.match(header, name):
            if not re.fullmatch(files, str(path)):
                return f"<{name}> may stand in {files} only"
            return None
    if name in C_HEADERS:
        return None
    if not POSIX.fullmatch(name):
        return f"<{name}> is not in the table of tests/lint/layers.py"
    if room in PURE:
        return f"<{name}>: {room} does no I/O"
    return None


def check_own(path, name, target):
    if target is None:
        return f'"{name}" does not exist under lib/ or the root'
    here, there = str(path.parent), str(target.parent)
    if there != here and there not in ROOMS[here]:
        return f"{here} may not include {there}"
    return None


def check_includes(root):
    for path in sources(root):
        for line, kind, name in includes(root, path):
            fault = (check_foreign(path, name) if kind == "<"
                     else check_own(path, name, resolve(root, name)))
            if fault:
                yield f"{path}:{line}: {fault}"


def check_own_header_first(root):
    """Directly, or by the header of its inner parts."""
    closure = header_closure(root, [p for p in sources(root) if p.suffix == ".h"])
    for path in sources(root):
        if path.suffix != ".c" or not (root / path).with_suffix(".h").exists():
            continue
        found = includes(root, path)
        own = str(path.with_suffix(".h")).removeprefix("lib/")
        first = resolve(root, found[0][2]) if found else None
        if first != path.with_suffix(".h") and path.with_suffix(".h") not in closure.get(first, ()):
            yield f'{path}:1: its own header "{own}" must be its first include'


def header_closure(root, headers):
    """Header -> all headers that it brings in."""
    direct = {}
    for path in headers:
        targets = (resolve(root, name) for _, kind, name in includes(root, path) if kind == '"')
        direct[path] = {t for t in targets if t is not None}
    closure = {}
    for path in headers:
        seen, todo = set(), list(direct[path])
        while todo:
            target = todo.pop()
            if target not in seen:
                seen.add(target)
                todo += direct.get(target, ())
        closure[path] = seen
    return closure


def module_graph(root):
    """Module (a .c and .h of one name) -> module -> where. A header that brings in the header of the
    module that includes it is a part of that module (a long one in several files): no arrow."""
    paths = sources(root)
    closure = header_closure(root, [p for p in paths if p.suffix == ".h"])
    graph = {}
    for path in paths:
        module = path.with_suffix("")
        node = graph.setdefault(str(module), {})
        for line, kind, name in includes(root, path):
            target = resolve(root, name) if kind == '"' else None
            if target is None or target.with_suffix("") == module:
                continue
            is_part = path.suffix == ".c" and path.with_suffix(".h") in closure.get(target, ())
            if not is_part:
                node.setdefault(str(target.with_suffix("")), f"{path}:{line}")
    return graph


def check_circles(root):
    """One finding for each module that can reach itself, with the way."""
    graph = module_graph(root)
    told = set()
    for start in sorted(graph):
        way = shortest_way(graph, start)
        if way and not told & set(way):
            told |= set(way)
            yield f"{graph[start][way[1]]}: circle: {' -> '.join(way)}"


def shortest_way(graph, start):
    ways = [[start]]
    seen = set()
    while ways:
        way = ways.pop(0)
        for target in graph.get(way[-1], {}):
            if target == start:
                return way + [start]
            if target not in seen:
                seen.add(target)
                ways.append(way + [target])
    return None


def check_table(root):
    """The table itself points down only, and knows every folder that holds product code."""
    order = list(ROOMS)
    for room, below in ROOMS.items():
        for other in below:
            if order.index(other) >= order.index(room):
                yield f"tests/lint/layers.py:1: {room} -> {other} points up"
    for path in sorted(root.glob("lib/*/*.c")):
        if str(path.parent.relative_to(root)) not in ROOMS:
            yield f"{path.relative_to(root)}:1: this room is not in the table"


CHECKS = [check_table, check_includes, check_own_header_first, check_circles]
