#!/usr/bin/env python3
"""A second BMC, by other people than ipmi_sim's: pyghmi's server, taught to speak cipher suite 17 besides 3, and to fail.

usage: bmc17.py ADDRESS PORT DIR [--suites 3,17] [--guid HEX] [--user admin] [--password secret12]

Suite 17 is RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128 (IPMI 2.0, tables 13-17 to 13-19 and 22-20). What pyghmi leaves
out and a BMC must do is added: errors of the handshake, privilege, the end of a session, its idle limit, session slots.

DIR/power holds 0 or 1. Knobs, files in DIR, looked at for each command:
  slow         seconds that each command takes
  slow_all     seconds that each packet takes, also of a login, one after the other
  busy         so many commands are answered "node busy" (0xC0)
  drop         so many answers are not sent, though the command was carried out
  off_delay    seconds between the acknowledgement and the fall
  ignore_off   the off is acknowledged and nothing happens
  lie_off      the off is acknowledged, nothing happens, and from then on it says off
  fail         power commands are answered "unspecified error" (0xFF)
  refuse_again an off while off is refused with "not supported in present state" (0xD5), as Dell's do
  no_sessions  every new session is refused: insufficient resources (0x01)
  drop_rakp4   so many RAKP message 4 are not sent
  odd_sum      the sums in its messages are wrong, and the packet's code is right
  opensesspriv its codes and keys are made with the privilege of Open Session, as FreeIPMI's workaround of that name knows
  privilege    the most that a session gets: 2 user, 3 operator, 4 administrator
  answer_NN_CC "CODE TIMES": so many commands CC of network function NN are answered with this code and not carried out,
               all in hexadecimal but the times
  late_NN_CC   seconds after which such commands are answered, each carried out before; nothing else is done meanwhile
  mute_NN_CC   so many such commands are carried out and not answered
  short_NN_CC  so many bytes of what such commands say are sent, and the rest is not
  close_own_only  sessions of others are closed for nobody (0xD4), as for a user below administrator
  session_info Get Session Info is there, and tells of the asking session alone ("own") or of all ("all")
What was commanded stands in DIR/commands.log, with the time in seconds."""

import argparse
import hashlib
import hmac
import os
import struct
import threading
import time
import uuid

import pyghmi.ipmi.bmc
import pyghmi.ipmi.private.constants as constants
import pyghmi.ipmi.private.serversession as serversession
import pyghmi.ipmi.private.session as ipmisession

# Numbers of authentication, integrity and confidentiality; the hash; the length of the integrity code.
SUITES = {3: ((1, 1, 1), hashlib.sha1, 12), 17: ((3, 4, 1), hashlib.sha256, 16)}
INSUFFICIENT_RESOURCES, NO_SUITE_MATCH, UNAUTHORIZED_NAME, INVALID_INTEGRITY = 0x01, 0x11, 0x0D, 0x0F
BUSY, NOT_IN_THIS_STATE, UNKNOWN_SESSION, INSUFFICIENT_PRIVILEGE, UNSPECIFIED = 0xC0, 0xD5, 0x87, 0xD4, 0xFF
INVALID_DATA = 0xCC
OPERATOR = 3
IDLE_LIMIT = 60


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("dir")
    parser.add_argument("--suites", default="3,17")
    parser.add_argument("--guid", default="00000000-0000-0000-0000-000000001234")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default="secret12")
    return parser.parse_args()


class Knobs:
    """Faults that a test sets while we run."""

    def __init__(self, directory):
        self.directory = directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def get(self, name):
        try:
            with open(self.path(name)) as file:
                return file.read().strip() or "1"
        except FileNotFoundError:
            return None

    def set(self, name, value):
        fresh = self.path(name + ".new")
        with open(fresh, "w") as file:
            file.write(str(value))
        os.rename(fresh, self.path(name))

    def take(self, name):
        """Uses up one of a counting knob; whether there was one."""
        left = int(self.get(name) or 0)
        if left > 0:
            self.set(name, left - 1)
        return left > 0

    def instead(self, netfn, command):
        """Uses up one of the codes that are set for a command; None: it is carried out."""
        name = "answer_%02x_%02x" % (netfn, command)
        code, times = (self.get(name) or "0 0").split()
        if int(times) > 0:
            self.set(name, "%s %d" % (code, int(times) - 1))
            return int(code, 16)
        return None

    def note(self, *words):
        with open(self.path("commands.log"), "a") as file:
            print("%.6f" % time.time(), *words, file=file)


class Session(serversession.ServerSession):
    """One session, with the suite that the other side proposed. It is told by its id, not by where its packets come from."""

    def create_open_session_response(self, request):
        # Without this pyghmi takes all that comes from there from now on, late copies included, for this session's.
        del ipmisession.Session.bmc_handlers[self.sockaddr]
        request = bytearray(request)
        self.tag, self.clientsessionid = request[0], bytes(request[4:8])
        self.privlevel = request[1] & 15 or 4
        self.clientpriv, self.over, self.last_heard = 2, False, time.monotonic()
        self.k1 = None
        if self.bmc.knobs.get("no_sessions"):
            return self.refusal(INSUFFICIENT_RESOURCES)
        proposed = (request[12] & 63, request[20] & 63, request[28] & 63)
        for suite in self.bmc.suites:
            algorithms, self.hash, self.code_length = SUITES[suite]
            if algorithms == proposed:
                self.managedsessionid = os.urandom(4)
                self.bmc.sessions[self.managedsessionid] = self
                self.currhashlib, self.currhashlen = self.hash, self.code_length
                payloads = b"".join(bytes([kind, 0, 0, 8, proposed[kind], 0, 0, 0]) for kind in range(3))
                head = bytearray([self.tag, 0, self.privlevel, 0])
                return head + self.clientsessionid + self.managedsessionid + payloads
        return self.refusal(NO_SUITE_MATCH)

    def refusal(self, status, tag=None):
        return bytearray([self.tag if tag is None else tag, status, 0, 0]) + self.clientsessionid

    def send(self, payload, kind):
        """A message of the handshake goes in the clear and outside of any session, also one that is said again in it."""
        inside = self.sessionid, self.sequencenumber, self.integrityalgo, self.confalgo
        self.sessionid = self.sequencenumber = self.integrityalgo = self.confalgo = 0
        self.send_payload(payload, constants.payload_types[kind], retry=False)
        self.sessionid, self.sequencenumber, self.integrityalgo, self.confalgo = inside

    def code(self, key, *parts):
        return hmac.new(key, b"".join(parts), self.hash).digest()

    def _got_rakp1(self, data):
        data = bytes(data)
        self.Rm, self.role = data[8:24], data[24:25]
        self.maxpriv = data[24] & 7
        self.username = data[28 : 28 + data[27]]
        # The role with which codes and keys are made.
        signed = bytes([self.privlevel]) if self.bmc.knobs.get("opensesspriv") else self.role
        self.who = signed + bytes([len(self.username)]) + self.username
        password = self.authdata.get(self.username.decode(errors="replace"))
        if password is None:
            return self.send(self.refusal(UNAUTHORIZED_NAME, data[0]), "rakp2")
        self.kuid = password.encode()
        self.kgk = self.kg or self.kuid
        self.Rc = os.urandom(16)
        ids = self.clientsessionid + self.managedsessionid
        proof = self.code(self.kuid, ids, self.Rm, self.Rc, self.uuid.bytes, self.who)
        head = bytearray([data[0], 0, 0, 0]) + self.clientsessionid
        self.send(head + self.Rc + self.uuid.bytes + proof, "rakp2")

    def _got_rakp3(self, data):
        data = bytes(data)
        if data[1]:
            return  # the other side gave up
        if not hmac.compare_digest(self.code(self.kuid, self.Rc, self.clientsessionid, self.who), data[8:]):
            return self.send(self.refusal(INVALID_INTEGRITY, data[0]), "rakp4")
        self.sik = self.code(self.kgk, self.Rm, self.Rc, self.who)
        self.k1 = self.code(self.sik, b"\x01" * 20)
        self.k2 = self.code(self.sik, b"\x02" * 20)
        self.aeskey = self.k2[:16]
        self.localsid = struct.unpack("<I", self.managedsessionid)[0]
        self.ipmicallback = self.handle_client_request
        self.bmc.knobs.note("session", self.username.decode())
        if self.bmc.knobs.take("drop_rakp4"):
            return
        self._send_rakp4(data[0], 0)

    def _send_rakp4(self, tag, status):
        proof = self.code(self.sik, self.Rm, self.managedsessionid, self.uuid.bytes)[: self.code_length]
        self.send(bytearray([tag, status, 0, 0]) + self.clientsessionid + proof, "rakp4")
        self.confalgo, self.integrityalgo = "aes", "ours"
        self.sequencenumber = self.sequencenumber or 1
        self.sessionid = struct.unpack("<I", self.clientsessionid)[0]

    def _handle_ipmi2_packet(self, data):
        """A session that ended, or idled too long, hears no more commands; a new handshake begins a new one."""
        kind = data[5] & 0x3F
        if kind in (0, 1):
            if not self.is_open():
                return None
            self.last_heard = time.monotonic()
        return super()._handle_ipmi2_packet(data)

    def is_open(self):
        idle = time.monotonic() - self.last_heard > IDLE_LIMIT
        return self.k1 is not None and not self.over and not idle

    def end(self):
        self.over = True
        self.bmc.knobs.note("closed", self.username.decode())

    def close(self, wanted):
        """Close Session, of this one or another."""
        other = self.bmc.sessions.get(wanted)
        if other is not self and self.bmc.knobs.get("close_own_only"):
            return self.send_ipmi_response(code=INSUFFICIENT_PRIVILEGE)
        if other is None or not other.is_open():
            return self.send_ipmi_response(code=UNKNOWN_SESSION)
        other.end()
        return self.send_ipmi_response()

    def session_info(self, whose, told):
        """Get Session Info by an id: its handle, the slots, how many are open, and user, level and channel."""
        wanted = bytes(whose[1:5])
        if wanted != self.managedsessionid and told == "own":
            return self.send_ipmi_response(code=INVALID_DATA)
        opened = [number for number, session in self.bmc.sessions.items() if session.is_open()]
        handle = opened.index(wanted) + 1 if wanted in opened else 0
        more = [2, self.clientpriv, 0x11] if handle else []
        return self.send_ipmi_response(data=[handle, 15, len(opened)] + more)

    def handle_client_request(self, request):
        netfn, command = request["netfn"], request["command"]
        self.asked = "%02x_%02x" % (netfn, command)
        instead = self.bmc.knobs.instead(netfn, command)
        if instead is not None:
            return self.send_ipmi_response(code=instead)
        if netfn == 6 and command == 0x3B:
            wanted = request["data"][0] & 15
            if wanted > min(self.maxpriv, int(self.bmc.knobs.get("privilege") or 15)):
                return self.send_ipmi_response(code=0x81)
            self.clientpriv = wanted or self.clientpriv
            return self.send_ipmi_response(data=[self.clientpriv])
        if netfn == 6 and command == 0x3C:
            return self.close(bytes(request["data"][:4]))
        if netfn == 6 and command == 0x3D and self.bmc.knobs.get("session_info"):
            return self.session_info(request["data"], self.bmc.knobs.get("session_info"))
        if netfn == 0 and command == 2 and self.clientpriv < OPERATOR:
            return self.send_ipmi_response(code=INSUFFICIENT_PRIVILEGE)
        return self.bmc.handle_raw_request(request, self)

    def _make_ipmi_payload(self, *arguments, **more):
        payload = super()._make_ipmi_payload(*arguments, **more)
        if self.bmc.knobs.get("odd_sum"):
            payload[2] ^= 0x55
            payload[-1] ^= 0x55
        return payload

    def send_ipmi_response(self, data=(), code=0):
        late = self.bmc.knobs.get("late_" + self.asked)
        if late:
            time.sleep(float(late))
        short = self.bmc.knobs.get("short_" + self.asked)
        if short:
            data = list(data)[: int(short)]
        if not self.bmc.knobs.take("mute_" + self.asked) and not self.bmc.knobs.take("drop"):
            super().send_ipmi_response(list(data), code)


class Bmc(pyghmi.ipmi.bmc.Bmc):
    """The BMC: its power is a file."""

    def __init__(self, options):
        self.knobs = Knobs(options.dir)
        self.suites = [int(suite) for suite in options.suites.split(",")]
        self.sessions = {}
        if self.knobs.get("power") is None:
            self.knobs.set("power", 1)
        users = {options.user: options.password}
        super().__init__(users, port=options.port, address=options.address, bmcuuid=uuid.UUID(options.guid))

    def sessionless_data(self, data, client):
        """All that comes, as no session is told by its client's address."""
        slow = self.knobs.get("slow_all")
        if slow:
            time.sleep(float(slow))
        data = bytearray(data)
        kind = data[5] & 0x3F if len(data) >= 24 and data[2:5] == b"\xff\x07\x06" else None
        at = {0x00: 6, 0x01: 6, 0x12: 20, 0x14: 20}.get(kind)
        number = bytes(4) if at is None else bytes(data[at : at + 4])
        if number in self.sessions:
            self.sessions[number]._handle_ipmi2_packet(data)
        elif number == bytes(4):
            super().sessionless_data(data, client)

    def get_system_guid(self):
        return self.uuid

    def get_power_state(self):
        return 0 if self.knobs.get("lied") else int(self.knobs.get("power"))

    def fall(self):
        self.knobs.note("off")
        self.knobs.set("power", 0)

    def power_off(self):
        if self.knobs.get("fail"):
            return UNSPECIFIED
        if self.knobs.get("refuse_again") and self.get_power_state() == 0:
            self.knobs.note("off refused")
            return NOT_IN_THIS_STATE
        delay = self.knobs.get("off_delay")
        if self.knobs.get("ignore_off"):
            self.knobs.note("off ignored")
        elif self.knobs.get("lie_off"):
            self.knobs.note("off lied")
            self.knobs.set("lied", 1)
        elif delay:
            threading.Timer(float(delay), self.fall).start()
        else:
            self.fall()
        return 0

    def power_on(self):
        if self.knobs.get("fail"):
            return UNSPECIFIED
        self.knobs.note("on")
        if os.path.exists(self.knobs.path("lied")):
            os.unlink(self.knobs.path("lied"))
        self.knobs.set("power", 1)
        return 0

    def handle_raw_request(self, request, session):
        slow = self.knobs.get("slow")
        if slow:
            time.sleep(float(slow))
        if self.knobs.take("busy"):
            return session.send_ipmi_response(code=BUSY)
        return super().handle_raw_request(request, session)

    def send_cipher_suites(self, myaddr, mylun, clientaddr, clientlun, clientseq, data, sockaddr):
        records = b""
        for suite in self.suites:
            auth, integrity, confidentiality = SUITES[suite][0]
            records += bytes([0xC0, suite, auth, 0x40 | integrity, 0x80 | confidentiality])
        answer = bytearray([myaddr, mylun | clientseq << 2, 0x54, 0, 1]) + records
        answer.append(ipmisession._checksum(*answer))
        head = bytearray([clientaddr, clientlun | 7 << 2])
        head.append(ipmisession._checksum(*head))
        body = head + answer
        rmcp = bytearray(b"\x06\x00\xff\x07\x06\x00") + bytes(8) + struct.pack("<H", len(body))
        ipmisession._io_sendto(self.serversocket, rmcp + body, sockaddr)


if __name__ == "__main__":
    serversession.ServerSession = Session
    Bmc(arguments()).listen()
