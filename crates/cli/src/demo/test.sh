#!/bin/sh
# The tests of sum.sh: one line each, exit 1 if any of them fails.
failed=0
check() {
    wanted=$1
    shift
    got=$(sh ./sum.sh "$@")
    if [ "$got" = "$wanted" ]; then
        echo "ok: sum of $* is $wanted"
    else
        echo "FAILED: sum of $* is $got, not $wanted"
        failed=1
    fi
}
check 5 2 3
check 0
check 42 40 1 1
exit $failed
