//! The BMC without sockets: what it takes, and what it does not.

use std::sync::Arc;
use std::time::Duration;

use picket_core::time::BootTime;
use picket_driver_ipmi::crypto::{Keys, Suite, hmac};
use picket_driver_ipmi::wire::{self, Payload};
use picket_driver_sim::{Act, Fault, World};

use super::*;
use crate::account::Role;

mod odd;

const BMC: &str = "n1";
const CONSOLE: u32 = 0xA0A1_A2A3;

fn at(seconds: u64) -> BootTime {
    BootTime::from_boot(Duration::from_secs(seconds))
}

struct Scene {
    world: World,
    bmc: IpmiBmc,
    suite: Suite,
    /// The packets that were sent to the BMC.
    sent: Vec<Vec<u8>>,
    /// The first byte of what the client's codes and keys are made with, if it is not the role of RAKP 1.
    signs: Option<u8>,
}

/// An open session, as a client keeps it.
struct Client {
    keys: Keys,
    id: u32,
    sent: u32,
    rakp3: Vec<u8>,
}

impl Scene {
    fn new(suite: Suite) -> Self {
        let mut world = World::new(1);
        world.add_machine(BMC).add_host(BMC, BMC);
        let account =
            |name: &str, role| Account { name: name.to_owned(), password: "secret12".to_owned(), role };
        let options = IpmiOptions {
            machine: BMC.to_owned(),
            device: BMC.to_owned(),
            accounts: Arc::new([account("admin", Role::Administrator), account("operator", Role::Operator)]),
            suites: vec![Suite::Sha1, Suite::Sha256],
        };
        let bmc = IpmiBmc::new(options, &world, 7);
        Self { world, bmc, suite, sent: Vec::new(), signs: None }
    }

    fn carry(&mut self, now: BootTime, mut packet: Vec<u8>) -> Option<Vec<u8>> {
        self.sent.push(packet.clone());
        self.bmc.handle(now, &mut self.world, &mut packet)
    }

    fn bare(&mut self, now: BootTime, kind: Payload, payload: &[u8], answer: Payload) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        wire::write_bare(&mut out, kind, payload);
        let answered = self.carry(now, out)?;
        Some(wire::read_bare(&answered, answer).expect("a packet outside of any session").to_vec())
    }

    fn open(&mut self, now: BootTime, level: u8) -> Result<u32, u8> {
        let mut payload = vec![1, level, 0, 0];
        payload.extend_from_slice(&CONSOLE.to_le_bytes());
        for (kind, algorithm) in (0..).zip(self.suite.algorithms()) {
            payload.extend_from_slice(&[kind, 0, 0, 8, algorithm, 0, 0, 0]);
        }
        let answer =
            self.bare(now, Payload::OpenRequest, &payload, Payload::OpenResponse).expect("an answer");
        assert_eq!((answer[0], &answer[4..8]), (1, &CONSOLE.to_le_bytes()[..]));
        match answer[1] {
            0 => Ok(u32::from_le_bytes(answer[8..12].try_into().expect("four bytes"))),
            status => Err(status),
        }
    }

    fn login(&mut self, now: BootTime, name: &str, password: &str, role: u8) -> Result<Client, u8> {
        let id = self.open(now, role)?;
        let random = [9; 16];
        let mut rakp1 = vec![2, 0, 0, 0];
        rakp1.extend_from_slice(&id.to_le_bytes());
        rakp1.extend_from_slice(&random);
        rakp1.extend_from_slice(&[0x10 | role, 0, 0, name.len() as u8]);
        rakp1.extend_from_slice(name.as_bytes());
        let rakp2 = self.bare(now, Payload::Rakp1, &rakp1, Payload::Rakp2).expect("an answer");
        if rakp2[1] != 0 {
            return Err(rakp2[1]);
        }
        let again = self.bare(now, Payload::Rakp1, &rakp1, Payload::Rakp2);
        assert_eq!(again.as_ref(), Some(&rakp2), "a copy gets the same answer");
        let signs = self.signs.unwrap_or(0x10 | role);
        let user = [&[signs, name.len() as u8], name.as_bytes()].concat();
        let theirs = &rakp2[8..24];
        let code = hmac(self.suite, password.as_bytes(), &[theirs, &CONSOLE.to_le_bytes(), &user]);
        let mut rakp3 = vec![3, 0, 0, 0];
        rakp3.extend_from_slice(&id.to_le_bytes());
        rakp3.extend_from_slice(code.bytes());
        let rakp4 = self.bare(now, Payload::Rakp3, &rakp3, Payload::Rakp4).expect("an answer");
        if rakp4[1] != 0 {
            return Err(rakp4[1]);
        }
        let key = hmac(self.suite, password.as_bytes(), &[&random, theirs, &user]);
        let check = hmac(self.suite, key.bytes(), &[&random, &id.to_le_bytes(), &rakp2[24..40]]);
        assert!(check.matches(&rakp4[8..], self.suite.code_len()));
        Ok(Client { keys: Keys::derive(self.suite, key.bytes()), id, sent: 0, rakp3 })
    }

    /// A packet with that number; what the BMC answers: completion code, data.
    fn send(
        &mut self,
        now: BootTime,
        client: &Client,
        number: u32,
        command: (u8, u8, &[u8]),
    ) -> Option<(u8, Vec<u8>)> {
        let (netfn, cmd, data) = command;
        let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
        let mut message = vec![0x20, netfn << 2];
        message.push(sum(&message));
        message.extend_from_slice(&[0x81, 4 << 2, cmd]);
        message.extend_from_slice(data);
        message.push(sum(&message[3..]));
        let mut packet = Vec::new();
        wire::write_sealed(&mut packet, &client.keys, client.id, number, &[5; 16], &message);
        let mut answer = self.carry(now, packet)?;
        let opened = wire::read_sealed(&mut answer, &client.keys, CONSOLE).expect("signed for us");
        let message = opened.message;
        assert_eq!((message[0], message[1] >> 2, message[4] >> 2, message[5]), (0x81, netfn | 1, 4, cmd));
        Some((message[6], message[7..message.len() - 1].to_vec()))
    }

    fn say(&mut self, now: BootTime, client: &mut Client, command: (u8, u8, &[u8])) -> Option<(u8, Vec<u8>)> {
        client.sent += 1;
        self.send(now, client, client.sent, command)
    }

    fn admin(&mut self, now: BootTime) -> Client {
        let mut client = self.login(now, "admin", "secret12", 4).expect("a session");
        assert_eq!(self.say(now, &mut client, (0x06, 0x3B, &[4])), Some((0, vec![4])));
        client
    }
}

const STATUS: (u8, u8, &[u8]) = (0x00, 0x01, &[]);
const OFF: (u8, u8, &[u8]) = (0x00, 0x02, &[0]);
const ON: (u8, u8, &[u8]) = (0x00, 0x02, &[1]);

#[test]
fn power_is_switched_and_told_in_a_session_of_either_suite() {
    for suite in [Suite::Sha1, Suite::Sha256] {
        let mut scene = Scene::new(suite);
        let mut client = scene.admin(at(1));
        assert_eq!(scene.say(at(1), &mut client, STATUS), Some((0, vec![0x21, 0, 0, 0xF0])));
        assert_eq!(scene.say(at(2), &mut client, OFF), Some((0, vec![])));
        assert_eq!(scene.say(at(2), &mut client, STATUS), Some((0, vec![0x20, 0, 0, 0xF0])));
        assert!(!scene.world.truth(BMC, at(2)));
        let id = client.id.to_le_bytes();
        assert_eq!(scene.say(at(3), &mut client, (0x06, 0x3C, &id)), Some((0, vec![])));
        assert_eq!(scene.say(at(3), &mut client, ON), None, "the session is over");
        assert!(!scene.world.truth(BMC, at(4)));
        assert_eq!(scene.world.sessions(BMC, at(4)), 0);
    }
}

#[test]
fn who_may_not_is_not_let_in() {
    let mut scene = Scene::new(Suite::Sha256);
    assert_eq!(scene.login(at(1), "nobody", "secret12", 4).err(), Some(0x0D));
    assert_eq!(scene.login(at(1), "operator", "secret12", 4).err(), Some(0x09), "above its limit");
    assert_eq!(scene.login(at(1), "admin", "guess", 4).err(), Some(0x0F));
    assert_eq!(scene.world.sessions(BMC, at(1)), 0, "their slots are given back");
    scene.world.fault(BMC, Fault::WrongPassword);
    assert_eq!(scene.login(at(2), "admin", "secret12", 4).err(), Some(0x0F));
    scene.world.mend(BMC);
    let mut operator = scene.login(at(3), "operator", "secret12", 3).expect("a session");
    assert_eq!(scene.say(at(3), &mut operator, OFF), Some((0xD4, vec![])), "it begins at User");
    assert_eq!(scene.say(at(3), &mut operator, (0x06, 0x3B, &[4])), Some((0x81, vec![])));
    assert_eq!(scene.say(at(3), &mut operator, (0x06, 0x3B, &[3])), Some((0, vec![3])));
    assert_eq!(scene.say(at(3), &mut operator, (0x00, 0x0A, &[1])), Some((0xD4, vec![])));
    assert!(scene.world.truth(BMC, at(3)));
    assert_eq!(scene.say(at(3), &mut operator, OFF), Some((0, vec![])));
}

#[test]
fn a_packet_is_executed_once_and_a_forged_one_never() {
    let mut scene = Scene::new(Suite::Sha1);
    let client = scene.admin(at(1));
    assert_eq!(scene.send(at(1), &client, 2, OFF), Some((0, vec![])));
    assert_eq!(scene.send(at(2), &client, 3, ON), Some((0, vec![])));
    assert_eq!(scene.send(at(3), &client, 2, OFF), None, "a copy that comes late");
    assert_eq!(scene.send(at(3), &client, 40, OFF), None, "too far ahead");
    let forged = Client { keys: Keys::derive(Suite::Sha1, b"guess"), rakp3: Vec::new(), ..client };
    assert_eq!(scene.send(at(3), &forged, 4, OFF), None);
    assert!(scene.world.truth(BMC, at(4)));
}

#[test]
fn a_copy_of_rakp_3_is_answered_until_the_session_is_used() {
    let mut scene = Scene::new(Suite::Sha256);
    let mut client = scene.login(at(1), "admin", "secret12", 4).expect("a session");
    let rakp3 = client.rakp3.clone();
    let again = scene.bare(at(1), Payload::Rakp3, &rakp3, Payload::Rakp4).expect("an answer");
    assert_eq!((again[1], again.len()), (0, 8 + 16));
    assert_eq!(scene.say(at(1), &mut client, STATUS).map(|(code, _)| code), Some(0));
    assert_eq!(scene.bare(at(1), Payload::Rakp3, &rakp3, Payload::Rakp4), None);
}

#[test]
fn sessions_are_few_idle_out_and_are_lost_with_a_restart() {
    let mut scene = Scene::new(Suite::Sha256);
    scene.world.set_sessions(BMC, 2, Duration::from_secs(60));
    let mut first = scene.admin(at(1));
    scene.open(at(2), 4).expect("a half-open one takes a slot");
    assert_eq!(scene.open(at(3), 4), Err(0x01));
    assert_eq!(scene.say(at(50), &mut first, STATUS).map(|(code, _)| code), Some(0));
    let mut second = scene.login(at(70), "admin", "secret12", 4).expect("the half-open one is over");
    assert_eq!(scene.say(at(120), &mut first, STATUS), None, "idle for too long");
    scene.world.happen(
        at(121),
        Act::RestartBmc { device: BMC.to_owned(), down: Duration::from_secs(3), estranged: true },
    );
    assert_eq!(scene.say(at(122), &mut second, STATUS), None);
    assert_eq!(scene.say(at(130), &mut second, STATUS), None, "it forgot its sessions");
    let mut third = scene.admin(at(131));
    assert_eq!(scene.say(at(131), &mut third, STATUS).map(|(_, data)| data[0] & 1), Some(0), "it lies");
    assert!(scene.world.truth(BMC, at(131)));
    assert_eq!(scene.bmc.sessions.len(), 1, "what is lost takes no memory");
}

#[test]
fn troubles_have_their_completion_codes() {
    for (fault, command, code) in [
        (Fault::Busy { times: 1 }, OFF, 0xC0),
        (Fault::OffRefused, OFF, 0xFF),
        (Fault::OffForbidden, OFF, 0xD4),
        (Fault::SaysNothing, STATUS, 0xCE),
        (Fault::HoldUnsupported, (0x00, 0x06, &[0][..]), 0xC1),
        (Fault::HoldUnsupported, (0x06, 0x25, &[][..]), 0xC1),
    ] {
        let mut scene = Scene::new(Suite::Sha256);
        let mut client = scene.admin(at(1));
        scene.world.fault(BMC, fault.clone());
        assert_eq!(scene.say(at(1), &mut client, command), Some((code, vec![])), "{fault:?}");
    }
    let mut scene = Scene::new(Suite::Sha256);
    scene.world.fault(BMC, Fault::AlreadyIsError);
    let mut client = scene.admin(at(1));
    assert_eq!(scene.say(at(1), &mut client, ON), Some((0xD5, vec![])));
    assert_eq!(scene.say(at(1), &mut client, (0x04, 0x20, &[])), Some((0xC1, vec![])));
    assert_eq!(scene.say(at(1), &mut client, (0x00, 0x02, &[])), Some((0xC7, vec![])));
}

#[test]
fn a_hold_is_the_world_s_and_comes_back_as_it_was_told() {
    let mut scene = Scene::new(Suite::Sha256);
    let mut client = scene.admin(at(1));
    let found = scene.say(at(1), &mut client, (0x06, 0x25, &[])).expect("an answer");
    assert_eq!(found, (0, vec![0x44, 0x03, 0, 0, 0xB8, 0x0B, 0xB8, 0x0B]));
    for command in
        [(0x00, 0x06, &[0][..]), (0x00, 0x0A, &[0x01]), (0x06, 0x24, &[0x04, 0x00, 0, 0, 0xB8, 0x0B])]
    {
        assert_eq!(scene.say(at(2), &mut client, command).map(|(code, _)| code), Some(0));
    }
    assert_eq!(scene.world.hold(BMC), picket_driver_sim::HoldSettings::HELD);
    assert_eq!(scene.say(at(2), &mut client, STATUS), Some((0, vec![0x01, 0, 0, 0xF1])));
    assert_eq!(scene.say(at(3), &mut client, (0x06, 0x22, &[])).map(|(code, _)| code), Some(0));
    assert!(scene.world.hold(BMC).watchdog, "its own system starts it again");
}

#[test]
fn any_bytes_are_taken_without_a_panic() {
    let mut scene = Scene::new(Suite::Sha256);
    let client = scene.admin(at(1));
    let mut random = Random::new(11);
    for turn in 0..20_000 {
        let len = usize::try_from(random.below(80)).expect("small");
        let mut bytes: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        let heads: [&[u8]; 5] = [
            &[6, 0, 255, 7, 6, 0x10, 0, 0, 0, 0, 0, 0, 0, 0],
            &[6, 0, 255, 7, 6, 0x12, 0, 0, 0, 0, 0, 0, 0, 0],
            &[6, 0, 255, 7, 6, 0x14, 0, 0, 0, 0, 0, 0, 0, 0],
            &[6, 0, 255, 7, 6, 0xC0],
            &[6, 0, 255, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        let head = heads[turn % heads.len()];
        if len > head.len() + 6 {
            bytes[..head.len()].copy_from_slice(head);
            if head.len() == 6 {
                bytes[6..10].copy_from_slice(&client.id.to_le_bytes());
            }
            if turn % 2 == 0 && head.len() == 14 {
                bytes[14..16].copy_from_slice(&((len - 16) as u16).to_le_bytes());
            }
        }
        scene.bmc.handle(at(2), &mut scene.world, &mut bytes);
    }
    assert!(scene.world.truth(BMC, at(3)));
    assert!(scene.bmc.sessions.len() <= 8);
}
