# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The stages of `./dev test`, sourced by it. Each stage writes its output to build/log/test-STAGE.log
# and its results as JUnit XML or by note_result; tests/tally.py adds them up.

# What ./dev has set.
: "${root:?}" "${jobs:?}" "${python:?}" "${logs:?}"

all_stages=(lint release unit asan tsan fuzz e2e real demo)
results=$root/build/results
stage=
long=()
pytest_args=()

# note_result NAME pass|fail|skip [REASON]: for what is not counted by ctest or pytest.
note_result() { printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>"$results/noted.tsv"; }

# run_ctest PRESET [CTEST-ARGUMENT]...
run_ctest() {
    local preset=$1 around=()
    shift
    # ThreadSanitizer cannot live with as many random address bits as some kernels use.
    if [[ $preset == tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then
        around=(setarch "$(uname -m)" -R)
    fi
    timeout -k 10 1200 "${around[@]}" ctest --test-dir "build/$preset" -j "$jobs" --timeout 300 --output-on-failure \
        --no-tests=error --output-junit "$results/ctest-$preset.xml" "$@"
}

# run_pytest BACKEND BIN [LABEL [PYTEST-ARGUMENT...]]: what is drawn by lot is the same in every run
# but the long ones, so that a change is not blamed for what an unlucky seed has found.
run_pytest() {
    local backend=$1 bin=$2 label=${3:-$1} files rc=0
    shift $(($# < 3 ? $# : 3))
    if [[ ${#long[@]} -eq 0 ]]; then local -x KUBERELAY_TEST_SEED=${KUBERELAY_TEST_SEED:-1}; fi
    files=$(mktemp -d "${TMPDIR:-/tmp}/kuberelay-e2e.XXXXXX")
    timeout -k 30 "${e2e_limit:-2400}" "$python" -m pytest tests/e2e -q -ra -p no:cacheprovider \
        --backend "$backend" --bin "$bin" --junit-xml "$results/pytest-$label.xml" \
        --basetemp "$files/pytest" "${long[@]}" "$@" "${pytest_args[@]}" || rc=$?
    rm -rf "$files"
    return $rc
}

stage_lint() { (lint) && note_result lint pass; }
stage_release() { (build release); }
stage_unit() { (build release) && run_ctest release; }
stage_asan() { (build asan) && run_ctest asan; }
# The corpus replay has no threads; the fault tests replace the allocator, as the sanitizer does.
stage_tsan() { (build tsan) && run_ctest tsan -E '^fuzz/|faults_test$|_nomem_test$'; }

# What weighs memory and time of the processor says nothing with a sanitizer: once more without one.
stage_e2e() {
    local rc=0 weighed=0
    (build asan) && run_pytest kubesim build/asan || rc=$?
    (build release) && run_pytest kubesim build/release weighed -m weighed || weighed=$?
    if [[ $weighed -eq 5 ]]; then weighed=0; fi # pytest's: none of what was asked for
    return $((rc != 0 ? rc : weighed))
}

# The same inputs in every run, as far as the seconds reach; `./dev fuzz` looks for new ones.
stage_fuzz() {
    local seconds=5 name log rc=0
    local -x KUBERELAY_TEST_SEED=${KUBERELAY_TEST_SEED:-1}
    if [[ ${#long[@]} -gt 0 ]]; then seconds=120; fi
    rm -rf "$root"/build/fuzz-work/*/ "$root"/build/fuzz-work/*.log
    (build fuzz) || return
    (fuzz "$seconds") || rc=$?
    for name in build/fuzz/tests/*_fuzz; do
        name=$(basename "$name")
        log=$root/build/fuzz-work/$name.log
        if [[ -e $log && $(tail -n1 "$log") == "result: ok" ]]; then
            note_result "fuzz/$name" pass
        else
            note_result "fuzz/$name" fail "see build/fuzz-work/$name.log"
            rc=1
        fi
    done
    return $rc
}

stage_real() {
    local rc=0 backend backends
    (build release) || return
    tests/real/build || rc=$?
    mapfile -t backends < <(for f in tests/real/apiserver-*/go.mod; do
        f=${f%/go.mod}
        echo "real-${f##*/apiserver-}"
    done)
    if [[ $rc -eq 77 ]]; then
        for backend in "${backends[@]}"; do
            note_result "e2e on $backend" skip "Go is not on this machine, or is too old, so kube-apiserver and etcd cannot be built"
        done
        return 0
    fi
    [[ $rc -eq 0 ]] || return $rc
    for backend in "${backends[@]}"; do
        run_pytest "$backend" build/release || rc=1
    done
    return $rc
}

stage_demo() {
    (build release) && timeout -k 10 600 tests/demo/demo.sh --once && note_result "demo --once" pass
}

noted_skips() { { cat "$results/noted.tsv" 2>/dev/null || true; } | awk -F'\t' '$2 == "skip"' | wc -l; }

# Runs one stage, says how it went and how long it took.
run_stage() {
    local log start=$SECONDS rc=0 failed_before failed_after skips_before
    stage=$1
    skips_before=$(noted_skips)
    log=$logs/test-$stage.log
    failed_before=$("$python" tests/tally.py "$results" --failed)
    (set +e; "stage_$stage") >"$log" 2>&1 || rc=$?
    failed_after=$("$python" tests/tally.py "$results" --failed)
    if [[ $rc -eq 0 && $failed_after -eq $failed_before && $(noted_skips) -gt $skips_before ]]; then
        echo "== $stage: SKIPPED ($((SECONDS - start)) s): $(tail -n1 "$results/noted.tsv" | cut -f3)"
        return
    fi
    if [[ $rc -eq 0 && $failed_after -eq $failed_before ]]; then
        echo "== $stage: ok ($((SECONDS - start)) s)$("$python" tests/tally.py "$results" --stage "$stage")"
        return
    fi
    if [[ $failed_after -eq $failed_before ]]; then
        note_result "$stage" fail "exit code $rc; see build/log/test-$stage.log"
    fi
    tail -n 120 "$log"
    echo "== $stage: FAILED ($((SECONDS - start)) s), log in build/log/test-$stage.log"
}

run_stages() {
    local only=() name start=$SECONDS
    while [[ $# -gt 0 ]]; do
        case $1 in
        --long) long=(--long) ;;
        --only)
            [[ -n ${2:-} && " ${all_stages[*]} " == *" $2 "* ]] || die "stages: ${all_stages[*]}"
            only+=("$2")
            shift
            ;;
        --)
            shift
            pytest_args=("$@")
            break
            ;;
        *) die "usage: ./dev test [--long] [--only STAGE]... [-- PYTEST-ARGUMENT...]" ;;
        esac
        shift
    done
    if [[ ${#only[@]} -eq 0 ]]; then only=("${all_stages[@]}"); fi
    if [[ ${#long[@]} -gt 0 ]]; then e2e_limit=10800; fi
    need build test demo lint fuzz
    rm -rf "$results"
    mkdir -p "$results" "$logs"
    for name in "${only[@]}"; do
        run_stage "$name"
    done
    echo "== all stages: $((SECONDS - start)) s"
    "$python" tests/tally.py "$results" ${KUBERELAY_REQUIRE_REAL:+--require-real}
}
