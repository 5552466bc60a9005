# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks take from the end-to-end tests. Their folders come behind this one in the path,
since both have a world.py; their modules are imported from here only."""

import sys

from world import HERE

sys.path += [str(HERE.parent / "e2e"), str(HERE.parent / "fakes")]

import backends  # noqa: E402,F401
import kubelet  # noqa: E402,F401
import rogueagent  # noqa: E402,F401
