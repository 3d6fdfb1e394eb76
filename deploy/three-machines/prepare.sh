#!/bin/sh
# Makes what each of the three machines gets, and what callers get: certificates, host.env, settings, units.
#
#   prepare.sh [--ca OLD/ca] DIRECTORY CALLER...
#
# DIRECTORY is made, and must not be there: nothing is overwritten. CALLER is who may call from elsewhere: an e-mail address, a
# SPIFFE id or a host name. --ca takes the CAs of an earlier run: to renew certificates, or to make one for another caller.
# DAYS=1095 is for how long the certificates hold; the CAs hold for ten years.
#
#   DIRECTORY/NAME.tar        of the machine NAME: all that belongs below its /etc, its keys among it
#   DIRECTORY/callers/CALLER  what a caller has in ~/.config/picket: contexts, certificate, key
#   DIRECTORY/ca              the keys of the three CAs: keep them off these machines; whoever has them can be anybody
# No names of files are made of what is read.
set -euf
umask 077
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
days=${DAYS:-1095}

fail() {
    echo "prepare.sh: $*" >&2
    exit 1
}

old=
if [ "${1-}" = --ca ]; then
    [ $# -ge 2 ] || fail "--ca wants the folder ca of an earlier run"
    old=$2
    shift 2
fi
[ $# -ge 2 ] || fail "usage: prepare.sh [--ca OLD/ca] DIRECTORY CALLER...   (a caller: alice@example.org)"
out=$1
shift
for tool in openssl tar install sed; do
    command -v $tool >/dev/null || fail "$tool is missing: on Debian, apt-get install openssl tar coreutils sed"
done
case $days in '' | *[!0-9]*) fail "DAYS is a number of days, and was '$days'" ;; esac
[ "$days" -ge 1 ] && [ "$days" -le 3650 ] || fail "DAYS is 1 to 3650, and was $days"
if [ -e "$out" ] || [ -L "$out" ]; then
    fail "$out is there already, and nothing is overwritten: name another directory"
fi
for ca in picket etcd etcd-peer; do
    [ -z "$old" ] || [ -r "$old/$ca.key" ] || fail "$old/$ca.key cannot be read: --ca wants the folder ca of an earlier run"
done

# --- who

# The three lines of the file machines, without remarks.
lines=$(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^[[:space:]]*$/d' "$here/machines")
[ "$(printf '%s\n' "$lines" | wc -l)" -eq 3 ] || fail "the file machines has three lines, one for each machine"
# line N: its words.
line() { printf '%s\n' "$lines" | sed -n "$1p"; }
name() { set -- $(line "$1") && printf %s "$1"; }
host() { set -- $(line "$1") && printf %s "${2-}"; }
hosts() { set -- $(line "$1") && shift && printf %s "$*"; }
seen=' '
for n in 1 2 3; do
    case $(name $n) in *[!a-z0-9-]* | -* | '') fail "machines: '$(name $n)' is no name: a-z, 0-9 and - are" ;; esac
    [ -n "$(host $n)" ] || fail "machines: $(name $n) has no host"
    for word in "$(name $n)" $(hosts $n); do
        case $word in *[!A-Za-z0-9.-]* | [-.]* | *..*) fail "machines: '$word' is neither a host name nor an IPv4 address" ;; esac
    done
    for word in "$(name $n)" "$(host $n)"; do
        # A machine may be called as its host is.
        case $seen in *" $word "*) [ "$word" = "$(name $n)" ] && [ "$word" = "$(host $n)" ] || fail "machines: $word stands there twice" ;; esac
        seen="$seen$word "
    done
done

# How a caller's name stands in its certificate.
caller_name() {
    case $1 in
    *[!A-Za-z0-9@._:/+-]* | -*) return 1 ;;
    spiffe://?*) echo "URI:$1" ;;
    *[:/]*) return 1 ;;
    ?*@?*) echo "email:$1" ;;
    ?*) echo "DNS:$1" ;;
    *) return 1 ;;
    esac
}
# What its files are called.
caller_file() { printf %s "${1#spiffe://}" | tr -c 'A-Za-z0-9@._+-' -; }
files=' '
for caller; do
    caller_name "$caller" >/dev/null || fail "'$caller' names no caller: an e-mail address, a SPIFFE id or a host name does"
    file=$(caller_file "$caller")
    case $file in .*) fail "'$caller' names no caller" ;; esac
    case $files in *" $file "*) fail "the files of '$caller' would be called as another caller's" ;; esac
    files="$files$file "
done

# --- certificates

work=$(mktemp -d "$out.XXXXXX") || fail "cannot make a directory beside $out"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
ca=$work/ca
mkdir "$ca" "$work/callers" "$work/made"
quietly() { "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "openssl failed"; }; }

# new_ca FILE NAME
new_ca() {
    if [ -n "$old" ]; then
        cp "$old/$1.key" "$old/$1.pem" "$ca/"
        return
    fi
    cat >"$work/request" <<EOF
[req]
prompt = no
distinguished_name = who
x509_extensions = what
[who]
CN = $2
[what]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
EOF
    quietly openssl req -x509 -config "$work/request" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 \
        -days 3650 -keyout "$ca/$1.key" -out "$ca/$1.pem"
}

# leaf CA FILE COMMON-NAME USES [NAME,...]: FILE.pem and FILE.key
leaf() {
    cat >"$work/request" <<EOF
[req]
prompt = no
distinguished_name = who
[who]
CN = $(printf %.64s "$3")
EOF
    cat >"$work/what" <<EOF
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = $4
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
EOF
    [ -z "${5-}" ] || echo "subjectAltName = $5" >>"$work/what"
    quietly openssl req -new -config "$work/request" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 \
        -keyout "$2.key" -out "$work/asked"
    quietly openssl x509 -req -in "$work/asked" -CA "$ca/$1.pem" -CAkey "$ca/$1.key" -sha256 -days "$days" \
        -set_serial "0x1$(openssl rand -hex 15)" -extfile "$work/what" -out "$2.pem"
}

# The names and addresses of machine N, as they stand in a certificate.
names() {
    for word in $(hosts "$1"); do
        case $word in *[!0-9.]*) printf 'DNS:%s,' "$word" ;; *) printf 'IP:%s,' "$word" ;; esac
    done | sed 's/,$//'
}

new_ca picket "picket CA"
new_ca etcd "picket etcd CA"
new_ca etcd-peer "picket etcd peer CA"

# --- what each machine gets

# Below a folder of its own with the paths that it has below /. put MODE FILE PATH
put() { install -D -m "$1" "$2" "$root/$3"; }

for n in 1 2 3; do
    name=$(name $n) host=$(host $n) root=$work/made/$(name $n)
    leaf picket "$work/server" "$name" serverAuth "$(names $n)"
    put 600 "$work/server.key" etc/picket/tls/server.key
    put 644 "$work/server.pem" etc/picket/tls/server.pem
    put 644 "$ca/picket.pem" etc/picket/tls/ca.pem
    leaf etcd "$work/client" "picketd $name" clientAuth
    put 600 "$work/client.key" etc/picket/etcd/client.key
    put 644 "$work/client.pem" etc/picket/etcd/client.pem
    put 644 "$ca/etcd.pem" etc/picket/etcd/ca.pem
    leaf etcd "$work/server" "$name" serverAuth "$(names $n)"
    put 600 "$work/server.key" etc/picket-etcd/server.key
    put 644 "$work/server.pem" etc/picket-etcd/server.pem
    put 644 "$ca/etcd.pem" etc/picket-etcd/ca.pem
    leaf etcd-peer "$work/peer" "$name" serverAuth,clientAuth "$(names $n)"
    put 600 "$work/peer.key" etc/picket-etcd/peer.key
    put 644 "$work/peer.pem" etc/picket-etcd/peer.pem
    put 644 "$ca/etcd-peer.pem" etc/picket-etcd/peer-ca.pem

    cat >"$work/host.env" <<EOF
# /etc/picket/host.env: all that differs from machine to machine besides its certificates, for picket-etcd and picketd.
# This is what prepare.sh makes for $name.
ETCD_NAME=$name
ETCD_ADVERTISE_CLIENT_URLS=https://$host:2379
ETCD_INITIAL_ADVERTISE_PEER_URLS=https://$host:2380
PICKET__GATEWAY__NAME=$name
PICKET__ELECTION__ADVERTISE=https://$host:7070

# The same on all three. It is read at the very first start alone.
ETCD_INITIAL_CLUSTER=$(name 1)=https://$(host 1):2380,$(name 2)=https://$(host 2):2380,$(name 3)=https://$(host 3):2380
EOF
    put 644 "$work/host.env" etc/picket/host.env
    # In two steps: a host of yours may be called as one of the example is.
    sed -e 's/g\([123]\)\.example\.org/@\1@/g' -e "s/@1@/$(host 1)/g" -e "s/@2@/$(host 2)/g" -e "s/@3@/$(host 3)/g" \
        "$here/picket.toml" >"$work/picket.toml"
    put 644 "$work/picket.toml" etc/picket/picket.toml
    put 644 "$here/../systemd/picketd.service" etc/systemd/system/picketd.service
    put 644 "$here/picketd.three-machines.conf" etc/systemd/system/picketd.service.d/three-machines.conf
    put 644 "$here/picket-etcd.service" etc/systemd/system/picket-etcd.service
    put 644 "$here/../systemd/picket.conf" etc/sysusers.d/picket.conf
    put 644 "$here/picket-etcd.sysusers.conf" etc/sysusers.d/picket-etcd.conf
    put 644 "$here/../systemd/picket.tmpfiles.conf" etc/tmpfiles.d/picket.conf
    put 644 "$here/three-machines.tmpfiles.conf" etc/tmpfiles.d/picket-three-machines.conf
    tar -C "$root" --owner=0 --group=0 --numeric-owner -cf "$work/$name.tar" etc
done

# --- what callers get

for caller; do
    root=$work/callers/$(caller_file "$caller")
    leaf picket "$work/caller" "$caller" clientAuth "$(caller_name "$caller")"
    put 600 "$work/caller.key" caller.key
    put 644 "$work/caller.pem" caller.pem
    put 644 "$ca/picket.pem" ca.pem
    cat >"$work/config.toml" <<EOF
# ~/.config/picket/config.toml; the three files beside it as well.
current = "picket"

[contexts.picket]
endpoints = ["https://$(host 1):7070", "https://$(host 2):7070", "https://$(host 3):7070"]
ca_file = "ca.pem"
cert_file = "caller.pem"
key_file = "caller.key"
EOF
    put 600 "$work/config.toml" config.toml
done

done_at=$work/done
mkdir "$done_at"
mv "$ca" "$work/callers" "$done_at/"
for n in 1 2 3; do
    mv "$work/$(name $n).tar" "$done_at/"
done
chmod 700 "$done_at/callers"
# Not over something that was made meanwhile: mv -T refuses a directory that is not empty, and -n a file.
mv -nT "$done_at" "$out"
[ ! -e "$done_at" ] || fail "$out was made by somebody else meanwhile: name another directory"
echo "Made in $out; the certificates hold until $(openssl x509 -in "$out/callers/$(caller_file "$1")/caller.pem" -noout -enddate | sed 's/.*=//')."
for n in 1 2 3; do
    echo "  $(name $n).tar    for $(host $n): README.md says how it is unpacked there"
done
for caller; do
    echo "  callers/$(caller_file "$caller")    for $caller, into ~/.config/picket"
done
echo "  ca    the keys of the CAs: move them to where no gateway is"
