#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue of attacks T01 to T39 and the tests that make each of them.

    tests/e2e/security.py            print the table of docs/security.md
    tests/e2e/security.py --write    put it there

test_security_map.py holds the names against the tree and the page against this list.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PAGE = REPO / "docs/security.md"
BEGIN, END = "<!-- attacks: made by tests/e2e/security.py -->", "<!-- end of attacks -->"


@dataclass(frozen=True)
class Attack:
    number: str
    what: str
    tests: tuple  # FILE: NAME_PREFIX; FILE without .py or _test.c
    missing: str = ""  # what one machine or this version cannot show, and why


def attack(number, what, *tests, missing=""):
    return Attack(number, what, tests, missing)


CATALOGUE = [
    attack("T01", "HTTP/2 conformance (h2spec)", "e2e/test_security_http2: test_T01",
           missing="frames on streams closed long ago are ignored by nghttp2 and not an error: listed"),
    attack("T02", "TLS 1.3 only, no tickets, compression, early data", "e2e/test_security_tls: test_T02",
           "unit/net/tls_context: test_", missing="testssl.sh is not run: openssl's client asks"),
    attack("T03", "wrong application protocol, or none", "e2e/test_security_tls: test_T03",
           "e2e/test_certificates: test_certificates_other_protocols"),
    attack("T04", "no certificate, foreign, expired, early, weak",
           "e2e/test_certificates: test_certificates_the_hub_refuses",
           "e2e/test_certificates: test_certificates_no_certificate",
           "e2e/test_certificates: test_certificates_a_foreign_user",
           "e2e/test_security_tls: test_T04",
           "unit/certs/identity: test_judge_when_weak"),
    attack("T05", "key usages that are absent or others'", "e2e/test_security_tls: test_T04_T05",
           "e2e/test_certificates: test_certificates_the_hub_refuses",
           "unit/certs/identity: test_judge_when_usage_is_wrong"),
    attack("T06", "names that only look right", "unit/certs/identity: test_judge_when_uri_is_not_exact",
           "unit/certs/spiffe_id: test_parse",
           "e2e/test_certificates: test_certificates_the_hub_refuses"),
    attack("T07", "certificates of another role", "unit/certs/identity: test_judge_when_role_is_another",
           "e2e/test_certificates: test_certificates_the_hub_refuses",
           "e2e/test_certificates: test_certificates_the_agent_refuses_a_hub",
           missing="there is no port between hubs yet"),
    attack("T08", "chains that lie, or are only long", "e2e/test_security_tls: test_T08"),
    attack("T09", "a cluster is denied while it works", "e2e/test_enroll_join: test_T09",
           "e2e/test_access_sockets: test_T09"),
    attack("T10", "revocation lists: revoked, expired, missing", "e2e/test_enroll_trust: test_T10"),
    attack("T11", "resumption after revocation", "e2e/test_enroll_trust: test_T11",
           "e2e/test_certificates: test_certificates_no_session_is_resumed"),
    attack("T12", "expiry during a connection", "e2e/test_enroll_renew: test_T12"),
    attack("T13", "renewal under load", "e2e/test_enroll_load: test_T13",
           missing="a thousand agents for half an hour only with `--long`; else 30, twice each"),
    attack("T14", "a key that was copied", "e2e/test_enroll_renew: test_T14",
           "e2e/test_audit_trust: test_T14"),
    attack("T15", "an agent, or a hub, that dies at any step of what it writes",
           "e2e/test_crash_points: test_T15", "e2e/test_enroll_renew: test_T15",
           "e2e/test_enroll_fallback: test_T15", "unit/agent/state: test_T15"),
    attack("T16", "join tokens: replay, races, other clusters, guessing",
           "e2e/test_enroll_join: test_T16", "e2e/test_signing: test_T16"),
    attack("T17", "root rotation, and back", "e2e/test_root_rotation: test_T17",
           "e2e/test_rotate_agent_ca: test_T17"),
    attack("T18", "secrets that are swapped, well and badly", "e2e/test_security_tls: test_T18",
           "e2e/test_renewed_files: test_"),
    attack("T19", "another server where the hub should be", "e2e/test_security_tls: test_T19",
           "e2e/test_root_pin: test_nothing_leaves", "unit/net/tls_pin: test_",
           "e2e/test_certificates: test_certificates_the_agent_refuses_a_hub"),
    attack("T20", "identity headers of the caller", "e2e/test_security_paths: test_T20",
           "e2e/test_check_15_19: test_check_19", "e2e/test_field_identity: test_field_F010",
           "e2e/test_field_identity: test_field_F011", "e2e/test_hostile: test_hostile_hub_cannot"),
    attack("T21", "500 forms of paths", "e2e/test_security_paths: test_T21",
           "e2e/test_check_24_28: test_check_24", "unit/kube/request_info: test_parse"),
    attack("T22", "who reads tries to get in", "e2e/test_access_projects: test_T22"),
    attack("T23", "request smuggling", "e2e/test_security_paths: test_T23",
           "e2e/test_check_24_28: test_check_26", "e2e/test_upgrades: test_upgrade_with_a_body",
           "e2e/test_upgrades: test_upgrade_early_bytes", "unit/http/h1_codec: test_request_when_framing"),
    attack("T24", "what follows a refused upgrade (CVE-2018-1002105)",
           "e2e/test_upgrades: test_field_F004", "e2e/test_check_51_55: test_check_52"),
    attack("T25", "redirects of the API server", "e2e/test_security_upstream: test_T25",
           "e2e/test_field_identity: test_field_F015",
           missing="a GET is told of a path on the same API server: services behind /proxy need it"),
    attack("T26", "two hosts in one request", "e2e/test_security_paths: test_T26",
           "e2e/test_check_24_28: test_check_26"),
    attack("T27", "forged ID tokens", "e2e/test_access_tokens: test_T27"),
    attack("T28", "a token that expires during a watch", "e2e/test_access_tokens: test_T28",
           "e2e/test_access_sockets: test_T28"),
    attack("T29", "a rule that goes during a watch", "e2e/test_access_projects: test_T29",
           "e2e/test_access_sockets: test_T29"),
    attack("T30", "a hub that checks nothing", "e2e/test_rogue_hub: test_t30"),
    attack("T31", "a hub that invents users (verified mode)", "e2e/test_access_edge: test_T31"),
    attack("T32", "an API server that floods, stalls and lies", "e2e/test_security_upstream: test_T32",
           "e2e/test_api_leg: test_api_leg_http1_a_malformed"),
    attack("T33", "an agent that was taken over", "unit/hub/rogue_agent: test_t33",
           "e2e/test_fleet_rogue: test_T33",
           missing="the latency of other clusters meanwhile is measured by `./dev bench fleet`, not demanded"),
    attack("T34", "lists show only what the rules allow", "e2e/test_fleet_tenancy: test_T34",
           "e2e/test_access_projects: test_T34",
           missing="50 clusters, 10,000 questions and the test of timing only with `--long`; else 8 "
                   "and 1,000"),
    attack("T35", "continue tokens that were changed or are another user's",
           "e2e/test_access_projects: test_T35",
           "e2e/test_fleet_hostile: test_tokens_that_were_changed",
           "unit/hub/fleet_token: test_token_when_anything_differs"),
    attack("T36", "names that break log lines", "e2e/test_audit: test_t36"),
    attack("T37", "three logs joined by one id", "e2e/test_audit_joined: test_t37",
           "e2e/test_audit: test_t37"),
    attack("T38", "credentials in logs, metrics, errors, state and memory",
           "e2e/test_secret_hygiene: test_t38", "e2e/test_audit: test_t38",
           missing="keys in use, and bodies that passed, are in memory; the fleet view's cache has no "
                   "snapshot"),
    attack("T39", "an audit log that takes no lines", "e2e/test_audit_sink: test_t39",
           "e2e/test_audit_trust: test_t39"),
]


def source_of(reference):
    """The file that a reference names."""
    stem = reference.split(":")[0]
    if stem.startswith("e2e/"):
        return REPO / "tests" / f"{stem}.py"
    return REPO / "tests" / f"{stem}_test.c"


def tests_of(reference):
    """The functions whose names begin as the reference says; [] if there are none."""
    path, prefix = source_of(reference), reference.split(": ")[1]
    if not path.exists():
        return []
    pattern = r"^def (\w+)\(" if path.suffix == ".py" else r"^static void (\w+)\(void \*\*"
    return [n for n in re.findall(pattern, path.read_text(), re.M) if n.startswith(prefix)]


def table():
    rows = ["| | attack | tests | not shown, and why |", "|---|---|---|---|"]
    for a in CATALOGUE:
        files = dict.fromkeys(str(source_of(t).relative_to(REPO / "tests")) for t in a.tests)
        rows.append(f"| {a.number} | {a.what} | {', '.join(f'`{f}`' for f in files)} | {a.missing} |")
    return "\n".join(rows)


def page_with_table(page):
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with_table(PAGE.read_text()))
    else:
        print(table())
