//! Which cipher suites a BMC says it offers, for the words of an error: Get Channel Cipher Suites (IPMI 2.0
//! §22.15).
//!
//! # Invariants
//!
//! - The question is asked outside of any session, so anybody on the way may have answered. The answer is
//!   told to people, with that, and nothing is done by it (S1). Shown by
//!   `a_refused_suite_names_those_that_are_offered_and_the_setting`.

use std::time::Duration;

use tokio::time::Instant;

use crate::link::Link;
use crate::session::{BMC, CONSOLE, checksum};
use crate::wire::{self, LARGEST, Payload};
use picket_driver::pace::FIRST_PAUSE;

/// How long each part of the list is waited for; a copy is sent meanwhile.
const PATIENCE: Duration = Duration::from_millis(750);
/// A list comes in parts of that many bytes; a shorter one is the last.
const PART: usize = 16;
/// Parts that are asked for at most: four of them have more suites than the specification knows.
const MOST_PARTS: u8 = 4;
/// Network functions "application", request and response, and the command.
const APP: u8 = 0x06;
const APP_RESPONSE: u8 = 0x07;
const GET_CHANNEL_CIPHER_SUITES: u8 = 0x54;
/// The channel on which it is asked, and the payload type IPMI (IPMI 2.0 table 22-18).
const THIS_CHANNEL: u8 = 0x0E;
const OF_IPMI: u8 = 0x00;
/// "List algorithms by cipher suite".
const BY_SUITE: u8 = 0x80;
/// How the record of a suite begins (table 22-19): one of the specification's, one of a vendor's.
const STANDARD: u8 = 0xC0;
const OEM: u8 = 0xC1;

fn request(part: u8) -> Vec<u8> {
    let mut message = vec![BMC, APP << 2];
    message.push(checksum(&message));
    message.extend_from_slice(&[CONSOLE, part << 2, GET_CHANNEL_CIPHER_SUITES]);
    message.extend_from_slice(&[THIS_CHANNEL, OF_IPMI, BY_SUITE | part]);
    message.push(checksum(&message[3..]));
    message
}

/// The records of that part, if `datagram` is the answer to its question.
fn records(datagram: &[u8], part: u8) -> Option<&[u8]> {
    let message = wire::read_bare(datagram, Payload::Ipmi)?;
    // Requester, network function, sum, responder, sequence, command, completion code, channel, …, sum.
    let (head, rest) = message.split_at_checked(8)?;
    let ours = head[1] >> 2 == APP_RESPONSE && head[4] >> 2 == part && head[5] == GET_CHANNEL_CIPHER_SUITES;
    if ours && head[6] == 0 { rest.split_last().map(|(_, records)| records) } else { None }
}

/// The numbers of the specification's suites in a list.
pub fn numbers(list: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    let mut rest = list;
    while let Some((first, more)) = rest.split_first() {
        rest = match (*first, more) {
            (STANDARD, [number, more @ ..]) => {
                numbers.push(*number);
                more
            }
            // Its number, and whose it is in three bytes.
            (OEM, more) => more.get(4..).unwrap_or_default(),
            // An algorithm of the record before.
            _ => more,
        };
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Asks; empty: no answer. At most until `until`.
pub async fn offered(link: &mut Link, until: Instant) -> Vec<u8> {
    let mut list = Vec::new();
    for part in 0..MOST_PARTS {
        let Some(records) = ask(link, part, until).await else { break };
        list.extend_from_slice(&records);
        if records.len() < PART {
            break;
        }
    }
    numbers(&list)
}

async fn ask(link: &mut Link, part: u8, until: Instant) -> Option<Vec<u8>> {
    let mut packet = Vec::new();
    wire::write_bare(&mut packet, Payload::Ipmi, &request(part));
    let mut buffer = [0; LARGEST];
    let over = until.min(Instant::now() + PATIENCE);
    let mut pause = FIRST_PAUSE;
    while Instant::now() < over {
        link.send(&packet).await;
        let wake = over.min(Instant::now() + pause);
        while let Some(datagram) = link.receive(&mut buffer, wake).await {
            if let Some(records) = records(datagram, part) {
                return Some(records.to_vec());
            }
            if Instant::now() >= wake {
                break;
            }
        }
        pause *= 2;
    }
    None
}

/// What an error says of that, with the setting to write; `allowed` is what the settings say.
pub fn words(offered: &[u8], allowed: &[u8]) -> String {
    let list = |numbers: &[u8]| numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let setting = match (offered.contains(&17), offered.contains(&3)) {
        _ if offered.is_empty() => return "it does not say which it offers".to_owned(),
        (true, _) if !allowed.contains(&17) => "set cipher_suites = [17]",
        (false, true) if !allowed.contains(&3) => "set cipher_suites = [17, 3]",
        (true, _) | (_, true) => {
            "so it refuses what it offers: look for suites that its own settings switch off for this privilege"
        }
        (false, false) => "Picket speaks 17 and 3 alone: a newer firmware may have one of them",
    };
    format!("it says, without a proof, that it offers {}: {setting}", list(offered))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_written_as_the_specification_says() {
        assert_eq!(request(0), [0x20, 0x18, 0xC8, 0x81, 0x00, 0x54, 0x0E, 0x00, 0x80, 0x9D]);
        assert_eq!(request(1)[8], 0x81);
    }

    #[test]
    fn numbers_are_those_of_records_and_not_of_algorithms_or_vendors() {
        let list = [
            0xC0, 17, 3, 0x44, 0x81, 0xC1, 0x80, 3, 0xC0, 0, 1, 0x41, 0x81, 0xC0, 3, 1, 0x41, 0x81, 0xC0, 0,
            0, 0x40, 0x80,
        ];
        assert_eq!(numbers(&list), [0, 3, 17]);
        assert_eq!(numbers(&[0xC0]), [0_u8; 0], "cut off");
        assert_eq!(numbers(&[0xC1, 1, 2]), [0_u8; 0], "cut off");
    }

    #[test]
    fn the_setting_that_is_told_is_one_that_there_is_and_would_help() {
        for (offered, allowed, told) in [
            (&[1, 2, 3][..], &[17][..], "offers 1, 2, 3: set cipher_suites = [17, 3]"),
            (&[3, 17], &[3], "set cipher_suites = [17]"),
            (&[17], &[3], "set cipher_suites = [17]"),
            (&[3, 17], &[17], "refuses what it offers"),
            (&[3], &[17, 3], "refuses what it offers"),
            (&[0, 1, 2], &[17], "17 and 3 alone"),
            (&[], &[17], "does not say"),
        ] {
            let words = words(offered, allowed);
            assert!(words.contains(told), "{offered:?} {allowed:?}: {words}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), honest_head: bool) {
            let mut datagram = Vec::new();
            wire::write_bare(&mut datagram, Payload::Ipmi, &bytes);
            let datagram = if honest_head { &datagram } else { &bytes };
            if let Some(records) = records(datagram, 0) {
                numbers(records);
            }
            numbers(&bytes);
        }
    }
}
