#!/bin/sh
# A fence agent for tests, which speaks as those of ClusterLabs do. It is told on its standard input alone. Its world is the directory
# "ip": the file "power" (on or off), and the troubles "silent", "silent-<action>", "nonsense", "missing", "transition", "gone", "deaf"
# (it does what it is told and hangs then), "refuses" (an off) and "slow" (milliseconds until it falls).
if [ "$1" = "-o" ]; then
    cat <<'METADATA'
<?xml version="1.0" ?>
<resource-agent name="fence_fake" shortdesc="for tests" >
<parameters>
<parameter name="action" required="1"><content type="string" default="reboot" /></parameter>
<parameter name="ip" required="1"><content type="string" /></parameter>
<parameter name="password" required="0"><content type="string" /></parameter>
<parameter name="retry_on" required="0"><content type="integer" default="1" /></parameter>
</parameters>
<actions><action name="on" automatic="0"/><action name="off" /><action name="status" /></actions>
</resource-agent>
METADATA
    exit 0
fi
[ $# -eq 0 ] || { echo "ERROR: told by arguments: $*" >&2; exit 1; }
while IFS= read -r line; do
    case "$line" in
        action=*) action=${line#action=} ;;
        ip=*) world=${line#ip=} ;;
        password=*) password=${line#password=} ;;
        retry_on=*) retry=${line#retry_on=} ;;
    esac
done
[ "$retry" = 0 ] || { echo "ERROR: it would be repeated" >&2; exit 1; }
[ "$password" = '" s3cret-pass"' ] || { echo "ERROR: Unable to connect/login to fencing device, $password" >&2; exit 1; }
# How many of them run at once, of all whose worlds lead to one directory "running".
if [ -d "$world/running" ]; then
    trap 'rm -f "$world/running/$$"' EXIT
    : >"$world/running/$$"
    # One that was killed left its mark.
    count=0
    for run in "$world/running"/*; do kill -0 "${run##*/}" 2>/dev/null && count=$((count + 1)); done
    echo "$count" >>"$world/counts"
    sleep 0.2
fi
# A program of its own, which must die with it.
[ ! -e "$world/silent" ] && [ ! -e "$world/silent-$action" ] || { sleep 1000 & echo $! >>"$world/children"; wait; }
power=$(cat "$world/power")
if [ -e "$world/falls" ] && [ "$(date +%s%3N)" -ge "$(cat "$world/falls")" ]; then
    rm "$world/falls"
    power=off
    echo off >"$world/power.new" && mv "$world/power.new" "$world/power"
fi
case "$action" in
    status)
        if [ -e "$world/nonsense" ]; then echo "Status: STANDBY"; exit 0; fi
        if [ -e "$world/missing" ]; then echo "Status:"; exit 2; fi
        if [ -e "$world/transition" ]; then echo "Status: POWERING OFF"; exit 2; fi
        if [ -e "$world/gone" ]; then echo "ERROR: Failed: You have to enter existing plug" >&2; exit 1; fi
        if [ "$power" = on ]; then echo "Status: ON"; exit 0; fi
        echo "Status: OFF"
        exit 2
        ;;
    on | off)
        if [ "$action" = off ] && [ -e "$world/refuses" ]; then echo "ERROR: it will not" >&2; exit 1; fi
        echo "$action" >>"$world/commands"
        # What other runs started and left must be dead by then.
        [ "$action" = off ] || for child in $(cat "$world/children" 2>/dev/null); do
            state=$(sed 's/.*) //' "/proc/$child/stat" 2>/dev/null | cut -c1)
            [ -z "$state" ] || [ "$state" = Z ] || echo "$child" >>"$world/outlived"
        done
        if [ -e "$world/deaf" ]; then
            echo "$action" >"$world/power.new" && mv "$world/power.new" "$world/power"
            sleep 1000 & echo $! >>"$world/children"; wait
        fi
        if [ "$power" = "$action" ]; then
            [ "$action" = off ] && echo "Success: Already OFF" || echo "Success: Already ON"
            exit 0
        fi
        if [ "$action" = off ] && [ -e "$world/slow" ]; then
            echo $(($(date +%s%3N) + $(cat "$world/slow"))) >"$world/falls"
        else
            echo "$action" >"$world/power.new" && mv "$world/power.new" "$world/power"
        fi
        [ "$action" = off ] && echo "Success: Powered OFF" || echo "Success: Powered ON"
        exit 0
        ;;
esac
exit 1
