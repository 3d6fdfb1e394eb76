//! BMCs that do what no specification says.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use picket_core::time::Clock;
use picket_driver_sim::SimClock;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::*;
use crate::BmcOptions;

/// Longer than any answer takes: it ends a test that hangs.
const LONG: Duration = Duration::from_secs(120);

/// The message of a session's packet, as it came.
fn message(scene: &mut Scene, client: &mut Client, command: (u8, u8)) -> Vec<u8> {
    client.sent += 1;
    let mut request = vec![0x20, command.0 << 2, 0, 0x81, 4 << 2, command.1, 0];
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    (request[2], request[6]) = (sum(&request[..2]), sum(&request[3..6]));
    let mut packet = Vec::new();
    wire::write_sealed(&mut packet, &client.keys, client.id, client.sent, &[5; 16], &request);
    let mut answer = scene.carry(at(1), packet).expect("an answer");
    let opened = wire::read_sealed(&mut answer, &client.keys, CONSOLE).expect("signed for us");
    opened.message.to_vec()
}

#[test]
fn sums_are_wrong_where_the_packet_is_signed_rightly() {
    let whole = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) == 0;
    let mut scene = Scene::new(Suite::Sha256);
    let mut client = scene.admin(at(1));
    let right = message(&mut scene, &mut client, (0x00, 0x01));
    assert!(whole(&right[..3]) && whole(&right[3..]), "{right:02X?}");
    scene.world.fault(BMC, Fault::WrongSums);
    let wrong = message(&mut scene, &mut client, (0x00, 0x01));
    assert!(!whole(&wrong[..3]) && !whole(&wrong[3..]), "{wrong:02X?}");
    let last = right.len() - 1;
    assert_eq!((&right[3..last], &right[..2]), (&wrong[3..last], &wrong[..2]), "the rest is as it was");
}

#[test]
fn keys_are_made_with_the_privilege_of_open_session() {
    for suite in [Suite::Sha1, Suite::Sha256] {
        let mut scene = Scene::new(suite);
        scene.world.fault(BMC, Fault::KeysByOpenSession);
        // By the specification its code is that of another password.
        assert_eq!(scene.login(at(1), "admin", "secret12", 4).err(), Some(0x0F));
        scene.signs = Some(4);
        let mut client = scene.admin(at(1));
        assert_eq!(scene.say(at(1), &mut client, OFF), Some((0, vec![])));
        assert!(!scene.world.truth(BMC, at(2)));
    }
}

#[test]
fn a_login_is_refused_as_an_unrecognized_parameter_and_keeps_no_slot() {
    let mut scene = Scene::new(Suite::Sha256);
    scene.world.fault(BMC, Fault::RakpRefused);
    assert_eq!(scene.login(at(1), "admin", "secret12", 4).err(), Some(0x12));
    assert_eq!(scene.world.sessions(BMC, at(1)), 0);
    scene.world.mend(BMC);
    scene.admin(at(2));
}

/// Its restore policy is unknown then, and its power is told.
#[test]
fn power_is_told_where_questions_for_holds_are_dropped() {
    let mut scene = Scene::new(Suite::Sha256);
    let mut client = scene.admin(at(1));
    scene.world.fault(BMC, Fault::DropsQuestions);
    assert_eq!(scene.say(at(1), &mut client, (0x06, 0x37, &[])), None);
    assert_eq!(scene.say(at(1), &mut client, (0x06, 0x25, &[])), None);
    assert_eq!(scene.say(at(1), &mut client, STATUS), Some((0, vec![0x61, 0, 0])));
}

#[test]
fn a_chassis_status_has_two_bytes_whatever_is_true() {
    let mut scene = Scene::new(Suite::Sha256);
    let mut client = scene.admin(at(1));
    scene.world.fault(BMC, Fault::SaysNonsense);
    assert_eq!(scene.say(at(1), &mut client, STATUS), Some((0, vec![0x20, 0])));
    assert_eq!(scene.say(at(1), &mut client, OFF), Some((0, vec![])));
    assert_eq!(scene.say(at(2), &mut client, STATUS), Some((0, vec![0x20, 0])));
}

/// One by one on a socket: by the same seed a BMC gives the same answers there as here.
#[tokio::test]
async fn the_end_of_a_session_is_answered_late_and_nothing_else_is() {
    let late = Duration::from_millis(700);
    let mut scene = Scene::new(Suite::Sha256);
    scene.world.fault(BMC, Fault::LateEnd(late));
    let mut client = scene.admin(at(1));
    assert_eq!(scene.bmc.late, Duration::ZERO);
    let id = client.id.to_le_bytes();
    assert_eq!(scene.say(at(1), &mut client, (0x06, 0x3C, &id)), Some((0, vec![])));
    assert_eq!((scene.bmc.late, scene.world.sessions(BMC, at(1))), (late, 0), "it ended at once");

    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    let accounts = scene.bmc.options.accounts.clone();
    let options = |host| BmcOptions {
        name: BMC.to_owned(),
        ipmi: SocketAddr::from((host, 10_623)),
        accounts: accounts.clone(),
        suites: vec![Suite::Sha1, Suite::Sha256],
        sessions: 4,
        idle: Duration::from_secs(60),
        redfish: None,
        seed: 7,
    };
    let fleet = crate::tests::start(&clock, options).await;
    let bmc = fleet.bmc(BMC).expect("it was asked for");
    bmc.fault(Fault::LateEnd(late));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    socket.connect(bmc.address()).await.expect("an address");
    let (close, before) = scene.sent.split_last().expect("packets were sent");
    let mut buffer = [0; 1024];
    for packet in before {
        socket.send(packet).await.expect("sent");
        timeout(LONG, socket.recv(&mut buffer)).await.expect("an answer").expect("read");
    }
    assert_eq!(bmc.world().sessions(BMC, bmc.now()), 1);
    let began = Instant::now();
    socket.send(close).await.expect("sent");
    let len = timeout(LONG, socket.recv(&mut buffer)).await.expect("an answer").expect("read");
    assert!(began.elapsed() >= late, "{:?}", began.elapsed());
    let opened = wire::read_sealed(&mut buffer[..len], &client.keys, CONSOLE).expect("signed for us");
    assert_eq!(opened.message[5..7], [0x3C, 0]);
    assert_eq!(bmc.world().sessions(BMC, bmc.now()), 0);
}
