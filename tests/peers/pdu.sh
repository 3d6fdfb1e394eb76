#!/bin/sh
# The outlets of a managed PDU, for net-snmp's snmpd (snmpd.conf(5), "pass"): EATON-EPDU-MIB's outlet table as far as an agent asks for it.
#   pdu.sh DIRECTORY -g|-n|-s OID [TYPE VALUE]
# An outlet is the file DIRECTORY/outlet-N with 1 (on) or 0; what was set is noted in DIRECTORY/commands.
base=.1.3.6.1.4.1.534.6.6.6.1.2.2.1.3
directory=$1
how=$2
outlet=${3#"$base".}
file=$directory/outlet-$outlet
case "$how" in
    -g)
        [ -e "$file" ] || exit 0
        echo "$3"
        echo integer
        cat "$file"
        ;;
    -s)
        [ -e "$file" ] || { echo not-writable; exit 0; }
        echo "$outlet $5" >>"$directory/commands"
        echo "$5" >"$file.new" && mv "$file.new" "$file"
        ;;
esac
exit 0
