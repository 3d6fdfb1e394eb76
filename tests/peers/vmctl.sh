#!/bin/bash
# Chassis control of one machine, as ipmi_sim calls it:
#
#   vmctl.sh MACHINE KNOBS get power|boot...          prints "power:0" or "power:1"
#   vmctl.sh MACHINE KNOBS set power 0|1 | reset 1 | shutdown 1 | boot X ...
#
# and as a test calls it, past the BMC:
#
#   vmctl.sh MACHINE KNOBS cycle SECONDS              somebody else's power cycle: off now, and on again after that time,
#                                                     whatever is commanded in between
#   vmctl.sh MACHINE KNOBS force 0|1                  off or on, whatever the knobs say
#
# MACHINE is the machine's directory (disk.img, vm.pid); KNOBS that of this BMC: two BMCs may lead to one machine.
# Where MACHINE/boot is, that program boots it instead of qemu.sh, and notes in vm.pid whose death is the machine's.
# Knobs: ignore_off   the off is acknowledged and nothing happens
#        lie_off      the off is acknowledged, nothing happens, and from then on the machine is said to be off
#        fail         commands fail
#        off_delay    seconds between the acknowledgement and the fall
#        slow         seconds that each call takes: the BMC hangs meanwhile, since it waits for us
#        stuck_get    0 or 1: what it says, whatever is true
# What is done to the machine stands in MACHINE/power.log, with the time in seconds.
machine=$1 knobs=$2 verb=$3
shift 3

note() { echo "$EPOCHREALTIME $*" >>"$machine/power.log"; }

# A process id from a file may be somebody else's by now: ours names the machine's directory in its arguments.
# A zombie has no arguments. One that has none and is no zombie is dying, and what lives in its namespaces with it; or it is
# one of the kernel's own threads, children of its process 2, which never had any.
alive() {
    local pid args stat state parent
    [ -s "$machine/vm.pid" ] && pid=$(<"$machine/vm.pid") || return 1
    mapfile -d '' -t args 2>/dev/null <"/proc/$pid/cmdline" || return 1
    if [ "${#args[@]}" = 0 ]; then
        { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
        read -r state parent _ <<<"${stat##*) }"
        [[ $state != [ZX] && $parent != 2 ]]
        return
    fi
    [[ "${args[*]}" == *"$machine"* ]]
}

on() {
    rm -f "$knobs/lied"
    alive && return
    note on
    if [ -e "$machine/boot" ]; then
        setsid "$machine/boot" "$machine" </dev/null >/dev/null 2>&1 &
        # On is on: who asks for power right after this hears so. A boot that fails has ended.
        while ! alive && kill -0 $! 2>/dev/null; do sleep .005; done
        return
    fi
    setsid "${0%/*}/qemu.sh" "$machine" </dev/null >/dev/null 2>&1 &
    echo $! >"$machine/vm.pid"
}

off() {
    if alive; then
        kill -9 "$(<"$machine/vm.pid")"
        while alive; do sleep .005; done
        note off
    fi
    rm -f "$machine/vm.pid"
}

commanded_off() {
    if [ -e "$knobs/ignore_off" ]; then
        return
    elif [ -e "$knobs/lie_off" ]; then
        : >"$knobs/lied"
    elif [ -s "$knobs/off_delay" ]; then
        (sleep "$(<"$knobs/off_delay")" && off) </dev/null >/dev/null 2>&1 &
    else
        off
    fi
}

say_power() {
    if [ -s "$knobs/stuck_get" ]; then
        echo "power:$(<"$knobs/stuck_get")"
    elif [ ! -e "$knobs/lied" ] && alive; then
        echo power:1
    else
        echo power:0
    fi
}

case $verb in
get | set) [ -s "$knobs/slow" ] && sleep "$(<"$knobs/slow")" ;;
esac

case $verb in
get)
    for what; do
        case $what in
        power) say_power ;;
        boot) echo boot:default ;;
        esac
    done
    ;;
set)
    if [ -e "$knobs/fail" ]; then
        echo "told to fail"
        exit 1
    fi
    while [ $# -ge 2 ]; do
        case $1=$2 in
        power=1) on ;;
        power=0) commanded_off ;;
        reset=*) off && on ;;
        shutdown=*) off ;;
        esac
        shift 2
    done
    ;;
cycle)
    note "cycle begins"
    off
    (sleep "$1" && note "cycle ends" && on) </dev/null >/dev/null 2>&1 &
    ;;
force)
    if [ "$1" = 1 ]; then on; else off; fi
    ;;
*)
    echo "vmctl.sh: no such verb: $verb" >&2
    exit 2
    ;;
esac
