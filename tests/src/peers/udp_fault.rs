//! A network that loses, doubles and delays, between a client and one BMC.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::fresh_address;
use super::window::Windows;
use crate::error::{PeerError, Result};

/// What happens to datagrams of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The share that is lost, 0 to 1.
    pub loss: f64,
    /// So many of the next ones are lost for certain.
    pub lose_next: u32,
    /// Nothing passes: held back for good.
    pub cut: bool,
    /// Before each is passed on.
    pub delay: Duration,
    /// At most so much more, at random: they overtake each other.
    pub jitter: Duration,
    /// So many more copies of each.
    pub copies: u32,
    /// The time from one copy to the next: late ones arrive when nobody expects them any more.
    pub copy_delay: Duration,
}

/// What passed and what did not, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams from clients.
    pub requests: u64,
    /// Datagrams from the BMC.
    pub answers: u64,
    /// Datagrams of either that were lost here.
    pub lost: u64,
    /// RAKP messages 1 from clients, those that were lost included: each is an attempt to log in, or a copy of one.
    pub logins: u64,
}

/// The dice of one direction (splitmix64): a seed replays, whatever happens in the other direction.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// A number of 0 to below 1.
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[derive(Debug)]
struct Direction {
    faults: Faults,
    dice: Dice,
    /// Datagrams that came, and those of them that were lost.
    came: u64,
    lost: u64,
    /// When the last of these was.
    lost_at: Option<Instant>,
}

impl Direction {
    fn new(seed: u64) -> Self {
        Self { faults: Faults::default(), dice: Dice(seed), came: 0, lost: 0, lost_at: None }
    }

    /// When the copies of the next datagram shall be passed on; none: it is lost.
    fn fate(&mut self) -> Vec<Duration> {
        // Both rolled for each datagram, so that one fault does not change the dice of the other.
        let (loss, jitter) = (self.dice.roll(), self.dice.roll());
        let faults = self.faults;
        self.came += 1;
        self.faults.lose_next = faults.lose_next.saturating_sub(1);
        if faults.lose_next > 0 || faults.cut || loss < faults.loss {
            self.lost += 1;
            self.lost_at = Some(Instant::now());
            return Vec::new();
        }
        let first = faults.delay + faults.jitter.mul_f64(jitter);
        (0..=faults.copies).map(|copy| first + faults.copy_delay * copy).collect()
    }
}

#[derive(Debug)]
struct State {
    requests: Direction,
    answers: Direction,
    logins: u64,
    /// When each client's first datagram came, in order.
    clients: Vec<(SocketAddr, Instant)>,
    /// Of a BMC that drops what comes twice, or too far ahead.
    windows: Option<Windows>,
    /// Where datagrams go, once so many more went to the BMC.
    leads: Option<(SocketAddr, u32)>,
}

impl State {
    /// Where the next datagram goes that is sent to `bmc`.
    fn leads(&mut self, bmc: SocketAddr) -> SocketAddr {
        match &mut self.leads {
            Some((other, 0)) => *other,
            Some((_, left)) => {
                *left -= 1;
                bmc
            }
            None => bmc,
        }
    }
}

/// A relay before one BMC. Clients speak to [`UdpFault::address`]. Dropped, it ends.
#[derive(Debug)]
pub struct UdpFault {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    // Aborted on drop.
    _relay: JoinSet<()>,
}

impl UdpFault {
    /// A relay before `bmc`, without faults yet. The seed of its dice is printed.
    pub async fn start(bmc: SocketAddr, seed: u64) -> Result<Self> {
        let address = fresh_address();
        println!("the network before {bmc}: {address}, seed {seed}");
        let front = UdpSocket::bind(address).await.map_err(PeerError::io(format!("bind {address}")))?;
        let state = State {
            requests: Direction::new(seed),
            answers: Direction::new(!seed),
            logins: 0,
            clients: Vec::new(),
            windows: None,
            leads: None,
        };
        let state = Arc::new(Mutex::new(state));
        let mut relay = JoinSet::new();
        relay.spawn(forward(Arc::new(front), bmc, Arc::clone(&state)));
        Ok(Self { address, state, _relay: relay })
    }

    /// Where clients find the BMC.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happens to datagrams towards the BMC from now on.
    pub fn requests(&self, faults: Faults) {
        self.state.lock().requests.faults = faults;
    }

    /// What happens to datagrams from the BMC from now on.
    pub fn answers(&self, faults: Faults) {
        self.state.lock().answers.faults = faults;
    }

    /// The same for both directions.
    pub fn both(&self, faults: Faults) {
        self.requests(faults);
        self.answers(faults);
    }

    /// The address leads to another BMC, once so many more datagrams went to this one: a lease that was given anew, a duplicate
    /// address.
    pub fn lead_to(&self, other: SocketAddr, after: u32) {
        self.state.lock().leads = Some((other, after));
    }

    /// From now on the BMC drops every sequence number that it has seen in a session, or that is outside of its window.
    pub fn drop_duplicates(&self) {
        self.state.lock().windows = Some(Windows::default());
    }

    /// Who spoke to the BMC so far, and when first, in order. Each session of a gateway's has a socket of its own.
    pub fn clients(&self) -> Vec<(SocketAddr, Instant)> {
        self.state.lock().clients.clone()
    }

    /// When a datagram towards the BMC was lost last.
    pub fn lost_request_at(&self) -> Option<Instant> {
        self.state.lock().requests.lost_at
    }

    /// What passed so far.
    pub fn counts(&self) -> Counts {
        let State { requests, answers, logins, .. } = &*self.state.lock();
        let lost = requests.lost + answers.lost;
        Counts { requests: requests.came, answers: answers.came, lost, logins: *logins }
    }
}

/// Takes what clients send; each client has a socket of its own towards each BMC.
async fn forward(front: Arc<UdpSocket>, bmc: SocketAddr, state: Arc<Mutex<State>>) {
    let mut clients: BTreeMap<(SocketAddr, SocketAddr), Arc<UdpSocket>> = BTreeMap::new();
    // Ends with this task: what is still under way then is lost.
    let mut under_way = JoinSet::new();
    let mut datagram = [0; 2048];
    loop {
        let Ok((length, client)) = front.recv_from(&mut datagram).await else { continue };
        let came = Instant::now();
        while under_way.try_join_next().is_some() {}
        let bmc = state.lock().leads(bmc);
        let back = match clients.get(&(client, bmc)) {
            Some(back) => Arc::clone(back),
            None => {
                let Ok(back) = UdpSocket::bind((bmc.ip(), 0)).await else { continue };
                if back.connect(bmc).await.is_err() {
                    continue;
                }
                let back = Arc::new(back);
                clients.insert((client, bmc), Arc::clone(&back));
                state.lock().clients.push((client, came));
                under_way.spawn(answer(Arc::clone(&front), client, Arc::clone(&back), Arc::clone(&state)));
                back
            }
        };
        let fate = {
            let mut state = state.lock();
            state.logins += u64::from(is_login(&datagram[..length]));
            state.requests.fate()
        };
        for after in fate {
            let (back, datagram) = (Arc::clone(&back), datagram[..length].to_vec());
            let state = Arc::clone(&state);
            pass(&mut under_way, after, async move {
                let taken = state.lock().windows.as_mut().is_none_or(|windows| windows.take(&datagram));
                if taken { back.send(&datagram).await } else { Ok(0) }
            });
        }
    }
}

/// RMCP+ (authentication type 6) with RAKP message 1 (payload type 0x12; IPMI 2.0 table 13-16).
fn is_login(datagram: &[u8]) -> bool {
    matches!(datagram, [_, _, _, _, 6, kind, ..] if kind & 0x3f == 0x12)
}

/// Takes what the BMC answers one client.
async fn answer(front: Arc<UdpSocket>, client: SocketAddr, back: Arc<UdpSocket>, state: Arc<Mutex<State>>) {
    let mut under_way = JoinSet::new();
    let mut datagram = [0; 2048];
    loop {
        // A refusal says that the BMC is not there: it may come back.
        let Ok(length) = back.recv(&mut datagram).await else { continue };
        while under_way.try_join_next().is_some() {}
        for after in state.lock().answers.fate() {
            let (front, datagram) = (Arc::clone(&front), datagram[..length].to_vec());
            pass(&mut under_way, after, async move { front.send_to(&datagram, client).await });
        }
    }
}

fn pass(
    under_way: &mut JoinSet<()>,
    after: Duration,
    send: impl Future<Output = std::io::Result<usize>> + Send + 'static,
) {
    under_way.spawn(async move {
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        // A datagram that the kernel refuses is one that the network lost.
        let _ = send.await;
    });
}
