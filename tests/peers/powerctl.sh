#!/bin/sh
# Chassis control over a state file, as ipmi_sim calls it:
#
#   powerctl.sh DIR get power|boot...        powerctl.sh DIR set power 0|1 | reset 1 | shutdown 1 | boot X ...
#
# DIR/power holds 0 or 1. Knobs in DIR: slow (seconds that each call takes; the BMC hangs meanwhile), fail.
dir=$1 verb=$2
shift 2
[ -s "$dir/slow" ] && sleep "$(cat "$dir/slow")"
case $verb in
get)
    for what; do
        case $what in
        power) read -r state <"$dir/power" && echo "power:$state" ;;
        boot) echo boot:default ;;
        esac
    done
    ;;
set)
    if [ -e "$dir/fail" ]; then
        echo "told to fail"
        exit 1
    fi
    while [ $# -ge 2 ]; do
        case $1 in
        power) echo "$2" >"$dir/power" ;;
        shutdown) echo 0 >"$dir/power" ;;
        esac
        shift 2
    done
    ;;
esac
