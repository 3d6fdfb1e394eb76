//! Who may what, as it is drawn, and judged without the gateway's own code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use picket_core::ids::NodeId;
use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};
use picket_core::time::BootTime;
use picket_driver_sim::Random;

use super::stage::{HYPERVISORS, NODES};

/// Over the loopback a caller is the address from which it comes.
const ADDRESSES: [&str; 4] = ["tcp:127.0.0.2", "tcp:127.0.0.3", "tcp:127.0.0.4", "tcp:127.0.0.5"];

/// Those, and whoever comes by the socket: this process.
pub fn callers() -> &'static [&'static str] {
    static CALLERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let user = format!("uid:{}", rustix::process::geteuid().as_raw());
        ADDRESSES.into_iter().chain([&*user.leak()]).collect()
    });
    &CALLERS
}

/// Whether two callers have one share of what there is little of: whoever reaches the loopback has any address of it.
pub fn share_room(one: &str, other: &str) -> bool {
    one == other || one.starts_with("tcp:") && other.starts_with("tcp:")
}

/// For whom somebody may act who is none of them.
pub const HOLDER: &str = "db";

/// From the least to the most.
const LADDER: [Role; 4] = [Role::Viewer, Role::Controller, Role::Operator, Role::Admin];

pub fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

#[derive(Clone, Debug)]
enum Over {
    All,
    Hosts(BTreeSet<&'static str>),
    Tenant(&'static str),
}

#[derive(Clone, Debug)]
struct Granted {
    caller: &'static str,
    /// Its place in the ladder.
    step: usize,
    over: Over,
    holders: Vec<&'static str>,
}

/// What the settings say of callers at one time.
#[derive(Clone, Debug)]
pub struct Rights {
    granted: Vec<Granted>,
    pub tenants: BTreeMap<&'static str, &'static str>,
    /// What may be fenced by the machine on which it runs, whoever asks.
    pub fenced_for: BTreeMap<&'static str, BTreeSet<NodeId>>,
}

impl Rights {
    pub fn draw(random: &mut Random) -> Self {
        let tenants = NODES.iter().map(|node| (*node, ["a", "b"][random.below(2) as usize])).collect();
        let mut granted = Vec::new();
        for caller in callers() {
            for _ in 0..1 + random.below(2) {
                granted.push(Granted::draw(caller, random));
            }
        }
        let mut fenced_for = BTreeMap::new();
        for hypervisor in HYPERVISORS {
            if !random.percent(25) {
                continue;
            }
            let named = NODES.into_iter().filter(|node| node.starts_with("vm"));
            fenced_for.insert(hypervisor, named.filter(|_| random.percent(40)).map(id).collect());
        }
        Self { granted, tenants, fenced_for }
    }

    fn of<'a>(&'a self, caller: &'a str, node: &'a str) -> impl Iterator<Item = &'a Granted> {
        let reaches = move |one: &&Granted| match &one.over {
            Over::All => true,
            Over::Hosts(hosts) => hosts.contains(node),
            Over::Tenant(tenant) => self.tenants.get(node) == Some(tenant),
        };
        self.granted.iter().filter(move |one| one.caller == caller).filter(reaches)
    }

    pub fn may(&self, caller: &str, role: Role, node: &str) -> bool {
        let step = LADDER.iter().position(|one| *one == role).expect("one of the ladder");
        self.of(caller, node).any(|one| one.step >= step)
    }

    /// Whether that caller may have a node fenced, or held, in that holder's name.
    pub fn may_hold(&self, caller: &str, holder: &str, node: &str) -> bool {
        let for_it = |one: &Granted| one.step == 3 || one.step >= 1 && one.holders.contains(&holder);
        self.may(caller, Role::Controller, node) && (caller == holder || self.of(caller, node).any(for_it))
    }

    /// Whether it has that role for each of these, and there is one.
    pub fn may_all<'a>(
        &self,
        caller: &str,
        role: Role,
        mut nodes: impl Iterator<Item = &'a &'a str>,
    ) -> bool {
        let mut any = false;
        let all = nodes.all(|node| {
            any = true;
            self.may(caller, role, node)
        });
        any && all || self.may_everywhere(caller, role)
    }

    /// Whether it has that role without a limit.
    pub fn may_everywhere(&self, caller: &str, role: Role) -> bool {
        let step = LADDER.iter().position(|one| *one == role).expect("one of the ladder");
        let mut granted = self.granted.iter();
        granted.any(|one| one.caller == caller && one.step >= step && matches!(one.over, Over::All))
    }

    /// The same, as the settings say it.
    pub fn roles(&self) -> Roles {
        let pattern = |name: &str| Pattern::new(name).expect("a good pattern");
        let grant = |(number, one): (usize, &Granted)| Grant {
            name: format!("grant {number}"),
            role: LADDER[one.step],
            callers: vec![pattern(one.caller)],
            uids: Vec::new(),
            gids: Vec::new(),
            nodes: match &one.over {
                Over::All => Scope::default(),
                Over::Tenant(tenant) => {
                    let labels = [("tenant".to_owned(), (*tenant).to_owned())];
                    Scope { labels: labels.into(), hosts: None }
                }
                Over::Hosts(hosts) => {
                    let hosts = ("drawn".to_owned(), hosts.iter().map(|node| id(node)).collect());
                    Scope { labels: BTreeMap::new(), hosts: Some(hosts) }
                }
            },
            holders: one.holders.iter().map(|holder| pattern(holder)).collect(),
        };
        Roles::new(self.granted.iter().enumerate().map(grant).collect())
    }
}

impl Granted {
    fn draw(caller: &'static str, random: &mut Random) -> Self {
        let step = [0, 1, 1, 1, 2, 2, 3][random.below(7) as usize];
        let over = match random.below(10) {
            0 | 1 => Over::All,
            2..5 => Over::Tenant(["a", "b"][random.below(2) as usize]),
            _ => Over::Hosts(NODES.into_iter().filter(|_| random.percent(45)).collect()),
        };
        let names = callers().iter().copied().chain([HOLDER]);
        Self { caller, step, over, holders: names.filter(|_| random.percent(30)).collect() }
    }
}

/// All that was in force, each from when the gateway was told of it until it had taken what came after it.
#[derive(Debug)]
pub struct InForce<T>(Vec<(Arc<T>, BootTime, Option<BootTime>)>);

impl<T> InForce<T> {
    pub fn new(first: &Arc<T>) -> Self {
        Self(vec![(first.clone(), BootTime::default(), None)])
    }

    pub fn begin(&mut self, one: &Arc<T>, now: BootTime) {
        self.0.push((one.clone(), now, None));
    }

    /// The newest one is in force alone.
    pub fn taken(&mut self, now: BootTime) {
        let last = self.0.len() - 1;
        self.0[..last].iter_mut().for_each(|(_, _, until)| *until = until.or(Some(now)));
    }

    /// The newest one was refused, and all goes on as before.
    pub fn refused(&mut self, now: BootTime) {
        let last = self.0.last_mut().expect("one was told");
        last.2 = Some(now);
    }

    /// Those that were in force at any time from `since` on.
    pub fn since(&self, since: BootTime) -> impl Iterator<Item = &T> {
        self.0
            .iter()
            .filter(move |(_, _, until)| until.is_none_or(|until| until >= since))
            .map(|(one, ..)| &**one)
    }
}
