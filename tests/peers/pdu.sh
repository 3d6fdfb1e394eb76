#!/bin/sh
# The outlets of a managed PDU, for net-snmp's snmpd (snmpd.conf(5), "pass_persist", whose answers it does not keep): EATON-EPDU-MIB's
# outlet table as far as an agent asks for it.
#   pdu.sh DIRECTORY
# An outlet is the file DIRECTORY/outlet-N with 1 (on) or 0; what was set is noted in DIRECTORY/commands. One that sticks, as the
# file DIRECTORY/stuck-N says, takes what it is told and stays as it is.
base=.1.3.6.1.4.1.534.6.6.6.1.2.2.1.3
directory=$1
while read -r what; do
    [ "$what" != PING ] || { echo PONG; continue; }
    read -r oid
    outlet=${oid#"$base".}
    file=$directory/outlet-$outlet
    case "$what" in
        get)
            [ -e "$file" ] || { echo NONE; continue; }
            echo "$oid"
            echo integer
            cat "$file"
            ;;
        set)
            read -r _ value
            [ -e "$file" ] || { echo not-writable; continue; }
            [ ! -e "$directory/stuck-$outlet" ] || { echo DONE; continue; }
            echo "$outlet $value" >>"$directory/commands"
            echo "$value" >"$file.new" && mv "$file.new" "$file"
            echo DONE
            ;;
        *) echo NONE ;;
    esac
done
