//! Contestant: a bare client, for the floor. Six packets there and six back, and nothing that a client needs besides:
//! it sends nothing again, checks no code, and believes every word.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use aes::Aes128;
use async_trait::async_trait;
use cbc::cipher::{Block, BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use picket_tests::peers::{ADMIN, PASSWORD};
use sha1::Sha1;

use super::contest::{Contestant, Deed};
use super::cost;
use crate::Wrong;

/// Nothing is sent again: what is lost ends the bench.
const PATIENCE: Duration = Duration::from_secs(10);
/// RMCP, class IPMI; authentication type RMCP+.
const HEAD: [u8; 5] = [0x06, 0x00, 0xff, 0x07, 0x06];
/// Administrator, looked up by name alone (IPMI 2.0 table 13-11).
const ROLE: u8 = 0x14;
/// The session's id on our side.
const LOCAL: [u8; 4] = [1, 2, 3, 4];
const IV: [u8; 16] = [0x5a; 16];

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Say {
    Open,
    Rakp1,
    Rakp3,
    Privilege,
    Off,
    /// Status, which must be so.
    IsOn,
    IsOff,
    Close,
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn bare(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_le_bytes();
    [&HEAD[..], &[kind], &[0; 8], &length, payload].concat()
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}

/// One session with one BMC.
struct Bare {
    socket: UdpSocket,
    random: [u8; 16],
    remote: [u8; 4],
    their_random: [u8; 16],
    integrity: [u8; 20],
    cipher: [u8; 16],
    sequence: u32,
}

impl Bare {
    fn new(bmc: SocketAddr) -> Result<Self, Wrong> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(bmc)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let (mut random, zero) = ([0; 16], [0; 16]);
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let integrity = [0; 20];
        Ok(Self { socket, random, remote: [0; 4], their_random: zero, integrity, cipher: zero, sequence: 0 })
    }

    fn user() -> Vec<u8> {
        [&[ROLE, ADMIN.len() as u8], ADMIN.as_bytes()].concat()
    }

    fn send(&mut self, say: Say) -> Result<(), Wrong> {
        let packet = match say {
            Say::Open => {
                let algorithms =
                    [[0, 0, 0, 8, 1, 0, 0, 0], [1, 0, 0, 8, 1, 0, 0, 0], [2, 0, 0, 8, 1, 0, 0, 0]];
                bare(0x10, &[&[0, 0, 0, 0], &LOCAL[..], &algorithms.concat()].concat())
            }
            Say::Rakp1 => {
                let name = [&[ROLE, 0, 0, ADMIN.len() as u8], ADMIN.as_bytes()].concat();
                bare(0x12, &[&[1, 0, 0, 0], &self.remote[..], &self.random, &name].concat())
            }
            Say::Rakp3 => {
                let user = Self::user();
                let code = hmac(PASSWORD.as_bytes(), &[&self.their_random, &LOCAL, &user]);
                let key = hmac(PASSWORD.as_bytes(), &[&self.random, &self.their_random, &user]);
                self.integrity = hmac(&key, &[&[1; 20]]);
                self.cipher.copy_from_slice(&hmac(&key, &[&[2; 20]])[..16]);
                bare(0x14, &[&[2, 0, 0, 0], &self.remote[..], &code].concat())
            }
            Say::Privilege => self.sealed(0x06, 0x3b, &[4]),
            Say::Off => self.sealed(0x00, 0x02, &[0]),
            Say::IsOn | Say::IsOff => self.sealed(0x00, 0x01, &[]),
            Say::Close => self.sealed(0x06, 0x3c, &self.remote.clone()),
        };
        self.socket.send(&packet)?;
        Ok(())
    }

    fn sealed(&mut self, function: u8, command: u8, data: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let head = [0x20, function << 2];
        let body = [&[0x81, (self.sequence as u8) << 2, command], data].concat();
        let mut text = [&head[..], &[sum(&head)], &body, &[sum(&body)]].concat();
        let pad = (16 - (text.len() + 1) % 16) % 16;
        text.extend((1..=pad as u8).chain([pad as u8]));
        let mut mode = cbc::Encryptor::<Aes128>::new(&self.cipher.into(), &IV.into());
        for block in text.chunks_exact_mut(16) {
            let block: &mut [u8; 16] = block.try_into().expect("chunks_exact gives whole blocks");
            mode.encrypt_block(<&mut Block<Aes128>>::from(block));
        }
        let length = (16 + text.len() as u16).to_le_bytes();
        let sequence = self.sequence.to_le_bytes();
        let mut packet = [&HEAD[..], &[0xc0], &self.remote, &sequence, &length, &IV, &text].concat();
        // Whole blocks and the header of 12 bytes: two bytes of padding make what is signed a multiple of four.
        packet.extend_from_slice(&[0xff, 0xff, 2, 7]);
        let code = hmac(&self.integrity, &[&packet[4..]]);
        packet.extend_from_slice(&code[..12]);
        packet
    }

    fn hear(&mut self, say: Say) -> Result<(), Wrong> {
        let mut buffer = [0; 512];
        let length = self.socket.recv(&mut buffer).map_err(|error| format!("the floor, {say:?}: {error}"))?;
        let wrong = || Wrong::from(format!("the floor: {say:?} was answered {:02x?}", &buffer[..length]));
        let packet = &buffer[..length];
        match say {
            Say::Open | Say::Rakp1 | Say::Rakp3 if packet.get(17) != Some(&0) => return Err(wrong()),
            Say::Open => self.remote.copy_from_slice(packet.get(24..28).ok_or_else(wrong)?),
            Say::Rakp1 => self.their_random.copy_from_slice(packet.get(24..40).ok_or_else(wrong)?),
            Say::Rakp3 => {}
            _ => {
                let mut text = packet.get(32..48).ok_or_else(wrong)?.to_vec();
                let mut block: [u8; 16] = text.as_slice().try_into()?;
                let iv: [u8; 16] = packet[16..32].try_into()?;
                let mut mode = cbc::Decryptor::<Aes128>::new(&self.cipher.into(), &iv.into());
                mode.decrypt_block(<&mut Block<Aes128>>::from(&mut block));
                text.copy_from_slice(&block);
                // Address, function, sum, address, sequence, command, completion code, data.
                let as_it_must = match say {
                    Say::IsOn => text[7] & 1 == 1,
                    Say::IsOff => text[7] & 1 == 0,
                    _ => true,
                };
                if text[6] != 0 || !as_it_must {
                    return Err(wrong());
                }
            }
        }
        Ok(())
    }
}

/// Says the same to all, then hears all.
fn all(bares: &mut [Bare], says: &[Say]) -> Result<(), Wrong> {
    for &say in says {
        bares.iter_mut().try_for_each(|bare| bare.send(say))?;
        bares.iter_mut().try_for_each(|bare| bare.hear(say))?;
    }
    Ok(())
}

const LOGIN: [Say; 4] = [Say::Open, Say::Rakp1, Say::Rakp3, Say::Privilege];

/// The floor for a crowd of BMCs: one thread, all in step.
pub struct Floor {
    warm: bool,
    bmcs: Vec<SocketAddr>,
    bares: Vec<Bare>,
}

impl Floor {
    /// Its names.
    pub const WARM: &str = "bare client, warm";
    /// With the close in its time.
    pub const COLD: &str = "bare client, cold, with close";

    /// For these BMCs; with sessions, or without and with the closes in its time.
    pub fn new(warm: bool, bmcs: Vec<SocketAddr>) -> Self {
        Self { warm, bmcs, bares: Vec::new() }
    }
}

#[async_trait]
impl Contestant for Floor {
    fn name(&self) -> &'static str {
        if self.warm { Self::WARM } else { Self::COLD }
    }

    async fn prepare(&mut self) -> Result<(), Wrong> {
        self.bares = self.bmcs.iter().map(|bmc| Bare::new(*bmc)).collect::<Result<_, _>>()?;
        if self.warm { all(&mut self.bares, &LOGIN) } else { Ok(()) }
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        let deed: &[Say] = match deed {
            Deed::Status => &[Say::IsOn],
            Deed::Off => &[Say::Off, Say::IsOff],
        };
        let says = match self.warm {
            true => deed.to_vec(),
            false => [&LOGIN[..], deed, &[Say::Close]].concat(),
        };
        tokio::task::block_in_place(|| all(&mut self.bares, &says))
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        let mut bares = std::mem::take(&mut self.bares);
        if self.warm { all(&mut bares, &[Say::Close]) } else { Ok(()) }
    }

    fn cpu(&self) -> Duration {
        cost::own_cpu()
    }
}
