#!/bin/sh
# Ends what a killed test run would leave behind. Reads lines from a pipe that only the test run holds open:
#
#   group PGID     a process group that lives         ended PGID     one that was ended by the run itself
#   machine DIR    a machine's directory (vm.pid)     closed DIR     likewise
#   folder DIR     a cloud's or a cluster's directory, which is of nobody's value     removed DIR     likewise
#
# At the end of the pipe, which comes however the run dies, everything that still lives is killed.
trap '' INT TERM HUP
lives=
while read -r what which; do
    case $what in
    group | machine | folder) lives="$lives
$what $which" ;;
    ended) lives=$(echo "$lives" | grep -vxF "group $which") ;;
    closed) lives=$(echo "$lives" | grep -vxF "machine $which") ;;
    removed) lives=$(echo "$lives" | grep -vxF "folder $which") ;;
    esac
done
echo "$lives" | while read -r what which; do
    case $what in
    group) kill -9 "-$which" 2>/dev/null ;;
    machine)
        : >"$which/closed" 2>/dev/null
        pid=$(cat "$which/vm.pid" 2>/dev/null) || continue
        # The id may be somebody else's by now: ours names the directory in its arguments.
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$which" && kill -9 "$pid"
        ;;
    esac
done
# Last, when nobody writes there any more.
echo "$lives" | while read -r what which; do
    case "$what $which" in
    "folder "*/picket-openstack-* | "folder "*/picket-kubernetes-* | "folder "*/picket-ec2-* | "folder "*/picket-gce-*) rm -rf "$which" 2>/dev/null || { sleep 1 && rm -rf "$which"; } ;;
    esac
done
