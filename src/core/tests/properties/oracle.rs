//! The law of proof, read off a raw log: written from S1, S2, S3 and S13 alone, and in another way than the judge.
//!
//! It looks backwards, from what was confirmed to what must stand in the log; the judge goes forwards. Where the law
//! leaves something to the careful, the judge may ask for more than this.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::confirm::ConfirmedOff;
use picket_core::device::{DeviceClass, DeviceSpec, Grade, IdentityMatch};
use picket_core::ids::DeviceId;
use picket_core::power::{Began, Epoch, Power};
use picket_core::time::BootTime;

/// When the fence of every history began.
pub fn began() -> BootTime {
    BootTime::from_boot(Duration::from_secs(1))
}

/// Something that one device said or was told, in the order of arrival.
#[derive(Clone, Debug)]
pub enum Entry {
    Answer {
        power: Power,
        asked: BootTime,
        answered: BootTime,
        epoch: Option<Epoch>,
        barred: bool,
    },
    Silence {
        asked: BootTime,
    },
    Off {
        asked: BootTime,
        answered: BootTime,
        epoch: Option<Epoch>,
        already: bool,
    },
    /// It refused our off.
    Refused {
        asked: BootTime,
        answered: BootTime,
        epoch: Option<Epoch>,
    },
    /// Whose machine it controls.
    Whose {
        said: IdentityMatch,
        epoch: Option<Epoch>,
    },
    Held,
}

/// All that the judge was told.
pub struct Log {
    pub levels: Vec<Vec<DeviceSpec>>,
    pub level: usize,
    pub resumed: bool,
    pub lost_before: Vec<DeviceId>,
    pub hold_up: Duration,
    pub barred: bool,
    pub entries: BTreeMap<DeviceId, Vec<Entry>>,
}

impl std::fmt::Display for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = |at: &BootTime| at.since_boot().as_millis();
        let life =
            |epoch: &Option<Epoch>| epoch.map_or(String::new(), |one| format!(" {}{:?}", one.id, one.loss));
        writeln!(f, "level {}, resumed {}, lost {:?}", self.level, self.resumed, self.lost_before)?;
        for (id, entries) in &self.entries {
            writeln!(f, "{id}:")?;
            for (at, entry) in entries.iter().enumerate() {
                write!(f, "{at:4}")?;
                match entry {
                    Entry::Answer { power, asked, answered, epoch, barred } => {
                        let barred = if *barred { " barred" } else { "" };
                        let (asked, answered) = (time(asked), time(answered));
                        writeln!(f, "  {asked}..{answered} reads {power:?}{}{barred}", life(epoch))?;
                    }
                    Entry::Silence { asked } => writeln!(f, "  {} is silent", time(asked))?,
                    Entry::Off { answered, epoch, already, .. } => {
                        let already = if *already { " already" } else { "" };
                        writeln!(f, "  {} takes our off{}{already}", time(answered), life(epoch))?;
                    }
                    Entry::Refused { answered, epoch, .. } => {
                        writeln!(f, "  {} refuses our off{}", time(answered), life(epoch))?;
                    }
                    Entry::Whose { said, epoch } => writeln!(f, "  says whose: {said:?}{}", life(epoch))?,
                    Entry::Held => writeln!(f, "  is held")?,
                }
            }
        }
        Ok(())
    }
}

/// Off, again and again, since our own off.
struct Dark {
    /// The first Off after that off, which a gap may have parted from those in a row.
    fell: BootTime,
    first_answered: BootTime,
    last_asked: BootTime,
    by_trust: bool,
}

impl Log {
    /// Why the law forbids this confirmation, if it does.
    pub fn objection(&self, proof: &ConfirmedOff, now: BootTime) -> Option<String> {
        self.check(proof, now).err()
    }

    fn check(&self, proof: &ConfirmedOff, now: BootTime) -> Result<(), String> {
        let level = self.levels.get(self.level).filter(|level| !level.is_empty()).ok_or("no device")?;
        if self.barred {
            return Err("an on or an unhold is open".to_owned());
        }
        let dark: Vec<Dark> = level.iter().map(|spec| self.dark(spec, now)).collect::<Result<_, String>>()?;
        let supplies = level[0].class == DeviceClass::Supply;
        let fell = dark.iter().map(|dark| dark.first_answered).max().ok_or("no device")?;
        let hold_up = if supplies { self.hold_up } else { Duration::ZERO };
        let since = fell + hold_up;
        let fell_first = dark.iter().map(|dark| dark.fell).max().ok_or("no device")? + hold_up;
        if dark.iter().any(|dark| dark.last_asked < since) {
            return Err("not in one window".to_owned());
        }
        let mut grade = level.iter().zip(&dark).map(|(spec, dark)| self.grade(spec, dark)).min().ok_or("")?;
        for host in self.levels.iter().flatten().filter(|spec| spec.class == DeviceClass::Host) {
            if level.contains(host) {
                continue;
            }
            let (power, asked) = self.newest(&host.id).ok_or(format!("{} was never asked", host.id))?;
            if asked < since || power == Some(Power::On) || self.said_on(&host.id, fell_first) {
                return Err(format!("{} objects or was not asked since: {power:?}", host.id));
            }
            if supplies && power.is_some() {
                grade = grade.lowered();
            }
        }
        let claimed = proof.evidence().grade;
        (claimed <= grade).then_some(()).ok_or(format!("graded {claimed:?}, and it is {grade:?}"))
    }

    fn grade(&self, spec: &DeviceSpec, dark: &Dark) -> Grade {
        let mut grade = match (spec.class, self.is_known(spec), spec.identity.is_empty()) {
            (DeviceClass::Supply, _, _) if spec.verified => spec.grade,
            (DeviceClass::Supply, _, _) => spec.grade.lowered(),
            (_, true, false) => spec.grade,
            // Nothing of these histories is proven but by the settings.
            (_, true, true) => spec.grade.min(Grade::Learned),
            (_, false, _) => spec.grade.min(Grade::Claimed),
        };
        if !spec.has_epochs {
            grade = grade.lowered();
        }
        if dark.by_trust { grade.min(Grade::Claimed) } else { grade }
    }

    /// What it said of whose machine it controls, oldest first.
    fn said_whose(&self, id: &DeviceId) -> impl Iterator<Item = (IdentityMatch, Option<Epoch>)> {
        self.entries.get(id).into_iter().flatten().filter_map(|entry| match entry {
            Entry::Whose { said, epoch } => Some((*said, *epoch)),
            _ => None,
        })
    }

    /// Whether it was asked since then, said On, and did not say Off to anything that was asked later.
    fn said_on(&self, id: &DeviceId, since: BootTime) -> bool {
        let log = self.entries.get(id).map(Vec::as_slice).unwrap_or_default();
        let asked = |wanted: Power| {
            log.iter().filter_map(move |entry| match entry {
                Entry::Answer { power, asked, .. } if *power == wanted => Some(*asked),
                _ => None,
            })
        };
        let newest_off = asked(Power::Off).max();
        asked(Power::On).any(|on| on >= since && newest_off.is_none_or(|off| off < on))
    }

    /// Whether it said at any time that it controls the node's machine.
    fn is_known(&self, spec: &DeviceSpec) -> bool {
        self.said_whose(&spec.id).any(|(said, _)| said == IdentityMatch::Match)
    }

    /// What the newest question came to: `None` for silence.
    fn newest(&self, id: &DeviceId) -> Option<(Option<Power>, BootTime)> {
        let words = self.entries.get(id)?.iter().filter_map(|entry| match entry {
            Entry::Answer { power, asked, .. } => Some((Some(*power), *asked)),
            Entry::Silence { asked } => Some((None, *asked)),
            Entry::Off { .. } | Entry::Refused { .. } | Entry::Whose { .. } | Entry::Held => None,
        });
        words.max_by_key(|(_, asked)| *asked)
    }

    /// Some off of ours after which everything that the law asks for was read.
    fn dark(&self, spec: &DeviceSpec, now: BootTime) -> Result<Dark, String> {
        let id = &spec.id;
        let known = |(said, _): &(IdentityMatch, _)| *said != IdentityMatch::Unknown;
        if self.said_whose(id).filter(known).last().is_some_and(|(said, _)| said == IdentityMatch::Mismatch) {
            return Err(format!("{id} controls another machine"));
        }
        let log = self.entries.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut why = "no off of ours explains it".to_owned();
        let mut trusted = None;
        for at in (0..log.len()).filter(|at| matches!(log[*at], Entry::Off { .. })) {
            match self.dark_since(spec, log, at, now) {
                Ok(dark) if !dark.by_trust => return Ok(dark),
                Ok(dark) => trusted = trusted.or(Some(dark)),
                Err(objection) => why = format!("{why}; entry {at}: {objection}"),
            }
        }
        trusted.ok_or(format!("{id}: {why}"))
    }

    /// Whether the off at `at` is the one after which it is dark.
    fn dark_since(&self, spec: &DeviceSpec, log: &[Entry], at: usize, now: BootTime) -> Result<Dark, String> {
        let Entry::Off { answered: taken, epoch, already, .. } = log[at] else { return Err(String::new()) };
        let (before, after) = (&log[..at], &log[at + 1..]);
        // One life: an answer in it before the off, nothing else after. A device that is declared without need not say it.
        let in_of = |entry: &Entry| match entry {
            Entry::Answer { epoch, .. }
            | Entry::Off { epoch, .. }
            | Entry::Refused { epoch, .. }
            | Entry::Whose { epoch, .. } => *epoch,
            Entry::Silence { .. } | Entry::Held => None,
        };
        let said = || after.iter().find_map(in_of).filter(|_| !spec.has_epochs);
        let life = epoch.or_else(said).map(|epoch| epoch.id);
        let is_this = |epoch: Option<Epoch>| match epoch {
            Some(epoch) => Some(epoch.id) == life || !spec.has_epochs && life.is_none(),
            None => !spec.has_epochs,
        };
        let in_life = |entry: &&Entry| match entry {
            Entry::Answer { epoch, .. }
            | Entry::Off { epoch, .. }
            | Entry::Refused { epoch, .. }
            | Entry::Whose { epoch, .. } => is_this(*epoch),
            Entry::Silence { .. } | Entry::Held => true,
        };
        if epoch.is_none() && spec.has_epochs || !after.iter().all(|entry| in_life(&entry)) {
            return Err("another life of the device".to_owned());
        }
        if after.iter().any(|entry| matches!(entry, Entry::Held)) {
            return Err("the hold came after the off".to_owned());
        }
        // S13: it was asked in that very life whose machine it controls, before the off. Once it is known, silence is no answer.
        let in_this = |said: &(IdentityMatch, Option<Epoch>)| is_this(said.1);
        let is_known = self.is_known(spec);
        let is_said_here =
            || self.said_whose(&spec.id).any(|said| said.0 == IdentityMatch::Match && in_this(&said));
        let is_asked = before
            .iter()
            .any(|entry| matches!(entry, Entry::Whose { said, epoch } if in_this(&(*said, *epoch))));
        if spec.class == DeviceClass::Host && (!is_asked || is_known && !is_said_here()) {
            return Err("it was not asked in that life whose machine it controls".to_owned());
        }
        let known = || before.iter().rev().take_while(in_life);
        let is_said = |entry: &Entry| !matches!(entry, Entry::Silence { .. } | Entry::Held);
        if epoch.is_some() && !known().any(is_said) {
            return Err("the first thing that was said in that life".to_owned());
        }
        let looks = known().take_while(|entry| !matches!(entry, Entry::Held));

        // The run: what was read last, without a break, all of it asked for after the off was taken.
        let mut run: Vec<(BootTime, BootTime, usize)> = Vec::new();
        let (mut fallen, mut undone, mut newest) = (None, false, BootTime::default());
        // When it was heard last, since a command that it answered is no gap.
        let mut heard = BootTime::default();
        for (index, entry) in after.iter().enumerate() {
            match entry {
                Entry::Answer { power: Power::Off, asked, answered, barred: false, .. } => {
                    if asked.since(heard) >= spec.dwell * 3 {
                        run.clear();
                    }
                    if *asked >= taken && *asked >= newest {
                        run.push((*asked, *answered, index));
                        heard = *answered;
                        fallen.get_or_insert(*answered);
                    }
                    newest = newest.max(*asked);
                }
                Entry::Answer { power, asked, .. } => {
                    undone |= *power == Power::On && fallen.is_some();
                    newest = newest.max(*asked);
                    run.clear();
                }
                Entry::Silence { .. } => run.clear(),
                Entry::Off { asked, answered, .. } | Entry::Refused { asked, answered, .. } => {
                    if asked.since(heard) < spec.dwell * 3 && answered.since(*asked) <= spec.call {
                        heard = *answered;
                    }
                }
                Entry::Whose { .. } | Entry::Held => {}
            }
        }
        let (Some(first), Some(last)) = (run.first().copied(), run.last().copied()) else {
            return Err("it does not read Off".to_owned());
        };
        if undone {
            return Err("it came on again after that off".to_owned());
        }
        if now.since(last.1) >= spec.dwell * 3 {
            return Err("read too long ago".to_owned());
        }
        let (mut count, mut counted) = (0, None);
        for (asked, answered, _) in &run {
            if counted.is_none_or(|last: BootTime| asked.since(last) >= spec.dwell) {
                (count, counted) = (count + 1, Some(*answered));
            }
        }
        if count < spec.readings {
            return Err(format!("{count} readings"));
        }

        // How long: what the first look said, and whether a life was lost or ended.
        let lives: Vec<Epoch> = log
            .iter()
            .filter_map(|entry| match entry {
                Entry::Answer { epoch, .. }
                | Entry::Off { epoch, .. }
                | Entry::Refused { epoch, .. }
                | Entry::Whose { epoch, .. } => *epoch,
                Entry::Silence { .. } | Entry::Held => None,
            })
            .collect();
        let lost = self.lost_before.contains(&spec.id)
            // Only the first life can follow one that ended before the fence; each later one follows one that was heard.
            || lives.iter().any(|life| life.was_lost_since(Began::Here(began())))
            || lives.iter().any(|life| life.id != lives[0].id && life.begins_after_loss())
            || lives.windows(2).any(|two| two[1].was_lost_after(two[0].id));
        let renewed = lives.iter().any(|life| life.id != lives[0].id && !life.begins_after_loss());
        let looks = looks.filter_map(|entry| match entry {
            Entry::Answer { power, asked, answered, .. } => Some((*asked, *power, *answered)),
            Entry::Silence { asked } => Some((*asked, Power::Unknown, *asked)),
            Entry::Off { .. } | Entry::Refused { .. } | Entry::Whose { .. } | Entry::Held => None,
        });
        // The newest of them; of two that were asked together the one that came last, and `known` goes backwards.
        let first_look = looks.reduce(|newest, look| if look.0 > newest.0 { look } else { newest });
        let near = spec.call + spec.dwell * 3;
        let seen_on = first_look
            .is_some_and(|(_, power, answered)| power == Power::On && taken.since(answered) <= near);
        let fell = seen_on && !already;
        let by_trust = lost && !fell;
        let window = match (by_trust, spec.trust_after_restart) {
            (true, None) => return Err("its session was lost, and it was not seen on since".to_owned()),
            (true, Some(dwell)) => Some(dwell.max(spec.longest_cycle)),
            _ if !fell || self.resumed || renewed || !spec.has_epochs => Some(spec.longest_cycle),
            _ => None,
        };
        if let Some(window) = window {
            let over = run.iter().find(|(asked, _, _)| asked.since(first.1) > window);
            let Some((_, _, over)) = over else { return Err(format!("not off for {window:?}")) };
            // It was sent again: taken, or refused by who took this one with a plain yes.
            let sealed = after[over + 1..].iter().any(|entry| match entry {
                Entry::Off { answered, .. } => *answered <= last.0,
                Entry::Refused { answered, .. } => !already && *answered <= last.0,
                _ => false,
            });
            if !sealed {
                return Err("our off was not sent again at the end".to_owned());
            }
        }
        Ok(Dark { fell: fallen.unwrap_or(first.1), first_answered: first.1, last_asked: last.0, by_trust })
    }
}
