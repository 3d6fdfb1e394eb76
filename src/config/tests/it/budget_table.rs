//! The table in `docs/budget.md` says what the defaults do from 2 to 10,000 nodes.

use picket_core::budget::{Books, Budget, LimitKind};
use picket_core::groups::Groups;
use picket_core::ids::NodeId;
use picket_core::record::{NodeRecord, Phase};
use picket_core::time::BootTime;

const SIZES: [usize; 10] = [2, 3, 4, 9, 10, 20, 50, 100, 1_000, 10_000];
const BEGIN: &str = "<!-- the defaults make this table: PICKET_BLESS=1 cargo test -p picket-config the_table_of_the_budget -->\n";
const END: &str = "<!-- end of the table -->\n";

fn node(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

/// What the defaults make of a fleet.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    at_once: usize,
    /// So many are fenced one after another, and kept off.
    kept_off: usize,
    /// What bars the next one.
    bar: LimitKind,
}

/// By the numbers alone.
fn computed(nodes: usize) -> Made {
    let budget = Budget::default();
    let fleet = budget.of_fleet(nodes);
    let left = usize::try_from(fleet.min_not_fenced.unwrap()).unwrap();
    let (most, brake) = (nodes - left, budget.brakes_at(nodes));
    let at_once = usize::try_from(fleet.most_at_once(nodes).unwrap()).unwrap();
    let (kept_off, bar) =
        if brake <= most + 1 { (brake - 1, LimitKind::Brake) } else { (most, LimitKind::MinNotFenced) };
    Made { at_once: at_once.min(kept_off), kept_off, bar }
}

/// By the books themselves: fences that begin, until one is barred.
fn walked(nodes: usize) -> Made {
    let now = BootTime::default();
    let books = || Books::new(Budget::default(), (1..=nodes).map(node).collect(), &Groups::default());
    let (mut at_once, mut together) = (0, books());
    while at_once < nodes && together.decide(&node(at_once + 1), None, now).is_ok() {
        at_once += 1;
        together.take(&node(at_once), false, now);
    }
    let (mut kept_off, mut one_by_one) = (0, books());
    loop {
        let next = node(kept_off + 1);
        match one_by_one.decide(&next, None, now) {
            Err(bar) => return Made { at_once, kept_off, bar: bar.kind },
            Ok(()) => kept_off += 1,
        }
        one_by_one.take(&next, false, now);
        one_by_one.stored(&NodeRecord { phase: Phase::Released, ..NodeRecord::new(next) }, now);
    }
}

#[test]
fn the_books_do_what_the_numbers_say() {
    for nodes in (2..=60).chain([99, 100, 101, 200]) {
        assert_eq!(walked(nodes), computed(nodes), "{nodes} nodes");
    }
}

fn table() -> String {
    let mut table = String::from(
        "| nodes | fences at once | a second failure, while the first node is being fenced | nodes that are kept off, at most | then |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for nodes in SIZES {
        let Made { at_once, kept_off, bar } = computed(nodes);
        let second = match (at_once, kept_off) {
            (1, 1) => "barred until the first node is back",
            (1, _) => "barred until the first node is released",
            _ => "begins at once",
        };
        let then = match bar {
            LimitKind::Brake => "the brake holds: `picket resume --everything`, or bring nodes back",
            _ => "too few are left: bring a node back, or `--override-budget`",
        };
        table += &format!("| {nodes} | {at_once} | {second} | {kept_off} | {then} |\n");
    }
    table
}

#[test]
fn the_table_of_the_budget_is_what_the_defaults_do() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/budget.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (shown, after) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os("PICKET_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert_eq!(shown, table(), "docs/budget.md differs (PICKET_BLESS=1 takes the new one)");
}
