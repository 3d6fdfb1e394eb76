//! As much of EC2 as the driver asks for, on a socket, with a clock of its own: it takes no signature whose time is over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::cloud::SIGNED;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use parking_lot::Mutex;
use picket_cloud::fakes::{self, header};

/// What goes wrong with the next request of an action.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// It is refused, with this code and these words, and this status.
    Refuse(&'static str, &'static str, u16),
    /// It is done, and no answer comes.
    Lose,
    /// It is done, and what is answered makes no sense.
    Garble,
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) state: &'static str,
    pub(super) tags: BTreeMap<String, String>,
    /// Volumes by device, and whether each goes with it.
    pub(super) volumes: BTreeMap<String, bool>,
    /// What it shows instead of its state.
    pub(super) shows: Option<&'static str>,
    /// It says that it keeps a volume, and does not.
    pub(super) forgets: bool,
    /// It shows no volumes, as one that was launched just now.
    pub(super) is_shy: bool,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct RequestRecord {
    pub(super) action: String,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) signed: Option<SystemTime>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: SystemTime,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) log: Vec<RequestRecord>,
    pub(super) faults: VecDeque<(&'static str, Fault)>,
    /// It does not say of whom it does not know.
    pub(super) mumbles: bool,
    /// The policy of who asks does not reach these.
    pub(super) denied: BTreeSet<String>,
    /// The most instances of which it takes one stop.
    pub(super) most: usize,
    /// It looks at the time of a question's signature, too.
    pub(super) is_strict: bool,
    /// DisableApiStop is set of all of them.
    pub(super) is_protected: bool,
    /// The spot request of all of them, as EC2 describes it; empty: they are no spot instances.
    pub(super) spot: &'static str,
    /// The devices of volumes of which EBS knows nothing.
    pub(super) unlisted: BTreeSet<String>,
}

/// It answers until the test is over.
#[derive(Clone, Debug)]
pub(super) struct Ec2 {
    pub(super) endpoint: String,
    pub(super) world: Arc<Mutex<World>>,
}

impl Ec2 {
    pub(super) async fn start(ids: impl IntoIterator<Item = String>) -> Self {
        let machine = Machine {
            state: "running",
            shows: None,
            tags: BTreeMap::new(),
            volumes: [("/dev/xvda".to_owned(), true), ("/dev/sdf".to_owned(), true)].into(),
            forgets: false,
            is_shy: false,
        };
        // Whole seconds, and not the time of this machine: nothing shall depend on that.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let machines = ids.into_iter().map(|id| (id, machine.clone())).collect();
        let (log, faults) = (Vec::new(), VecDeque::new());
        let world = World {
            now,
            machines,
            log,
            faults,
            mumbles: false,
            denied: BTreeSet::new(),
            most: usize::MAX,
            is_strict: false,
            is_protected: false,
            spot: "",
            unlisted: BTreeSet::new(),
        };
        let world = Arc::new(Mutex::new(world));
        let served = world.clone();
        let endpoint = fakes::serve(move |head, body| answer(&served, head, body)).await;
        Self { endpoint, world }
    }

    pub(super) fn with<T>(&self, of: impl FnOnce(&mut World) -> T) -> T {
        of(&mut self.world.lock())
    }

    pub(super) fn fail(&self, action: &'static str, fault: Fault) {
        self.with(|world| world.faults.push_back((action, fault)));
    }

    /// What came of that action.
    pub(super) fn heard(&self, action: &str) -> Vec<RequestRecord> {
        self.with(|world| world.log.iter().filter(|heard| heard.action == action).cloned().collect())
    }

    pub(super) fn state(&self, id: &str) -> &'static str {
        self.with(|world| world.machines[id].state)
    }
}

fn answer(world: &Mutex<World>, head: String, body: String) -> Option<String> {
    let mut world = world.lock();
    let (status, text) = world.answer(&head, &body)?;
    let date = DateTime::from(world.now).fmt(Format::HttpDate).expect("a date");
    let head = format!("HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Type: text/xml");
    Some(format!("{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len()))
}

/// `20330518T033320Z`.
fn signed(head: &str) -> Option<SystemTime> {
    let text = header(head, "x-amz-date")?;
    let part = |from: usize, to: usize| text.get(from..to);
    let (day, time) = (format!("{}-{}-{}", part(0, 4)?, part(4, 6)?, part(6, 8)?), part(9, 15)?);
    let time = format!("{}:{}:{}", time.get(0..2)?, time.get(2..4)?, time.get(4..6)?);
    let at = DateTime::from_str(&format!("{day}T{time}Z"), Format::DateTime).ok()?;
    SystemTime::try_from(at).ok()
}

fn error(status: u16, code: &str, message: &str) -> Option<(u16, String)> {
    let text = format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>r</RequestID></Response>"
    );
    Some((status, text))
}

fn number(state: &str) -> u16 {
    match state {
        "pending" => 0,
        "running" => 16,
        "terminated" => 48,
        "stopping" => 64,
        _ => 80,
    }
}

fn state(tag: &str, state: &str) -> String {
    format!("<{tag}><code>{}</code><name>{state}</name></{tag}>", number(state))
}

impl World {
    fn answer(&mut self, head: &str, body: &str) -> Option<(u16, String)> {
        let plain = |text: &str| text.replace("%2F", "/").replace("%3A", ":").replace('+', " ");
        let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
        let fields: BTreeMap<String, String> = pairs.map(|(key, value)| (plain(key), plain(value))).collect();
        let action = fields.get("Action").cloned().unwrap_or_default();
        let signed = signed(head);
        self.log.push(RequestRecord { action: action.clone(), fields: fields.clone(), signed });
        let age = self.now.duration_since(signed?).unwrap_or_default();
        // The first question is signed by this machine's clock.
        let is_looked_at = self.is_strict || !action.starts_with("Describe") && action != "AssumeRole";
        let early = signed?.duration_since(self.now).unwrap_or_default();
        if is_looked_at && age.max(early) > SIGNED {
            return error(400, "RequestExpired", "Request has expired.");
        }
        let fault = match self.faults.front() {
            Some((of, _)) if *of == action => self.faults.pop_front().map(|(_, fault)| fault),
            _ => None,
        };
        match fault {
            Some(Fault::Refuse(code, message, status)) => error(status, code, message),
            Some(Fault::Lose) => {
                let _ = self.perform(&action, &fields);
                None
            }
            Some(Fault::Garble) => {
                let _ = self.perform(&action, &fields);
                Some((200, "<html>hello hunter4</html>".to_owned()))
            }
            None => match self.perform(&action, &fields) {
                Ok(inner) => Some((
                    200,
                    format!(
                        "<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">{inner}</{action}Response>"
                    ),
                )),
                Err((code, message)) => error(400, code, &message),
            },
        }
    }

    fn perform(
        &mut self,
        action: &str,
        fields: &BTreeMap<String, String>,
    ) -> Result<String, (&'static str, String)> {
        let numbered = |key: &str| -> BTreeSet<String> {
            let beginning = format!("{key}.");
            fields
                .iter()
                .filter(|(name, _)| name.starts_with(&beginning))
                .map(|(_, value)| value.clone())
                .collect()
        };
        let mut ids = numbered("InstanceId");
        ids.extend(fields.get("InstanceId").cloned());
        ids.extend(numbered("ResourceId"));
        let missing: Vec<_> = ids.iter().filter(|id| !self.machines.contains_key(*id)).cloned().collect();
        if !missing.is_empty() {
            let of = if self.mumbles {
                "Something".to_owned()
            } else {
                format!("The instance IDs '{}'", missing.join(", "))
            };
            return Err(("InvalidInstanceID.NotFound", format!("{of} do not exist")));
        }
        if action == "StopInstances" && ids.len() > self.most {
            return Err(("RequestLimitExceeded", "Request limit exceeded.".to_owned()));
        }
        if let Some(denied) = ids.iter().find(|id| action == "StopInstances" && self.denied.contains(*id)) {
            let what =
                "User: arn:aws:iam::1:user/p is not authorized to perform: ec2:StopInstances on resource";
            let words =
                format!("{what}: arn:aws:ec2:eu-central-1:1:instance/{denied} because no policy allows it");
            return Err(("UnauthorizedOperation", words));
        }
        let mut each = String::new();
        for id in &ids {
            let Some(machine) = self.machines.get_mut(id) else { continue };
            each.push_str(&one(action, fields, id, machine)?);
        }
        Ok(match action {
            "DescribeVolumes" => format!("<volumeSet>{}</volumeSet>", self.volumes(fields)?),
            "DescribeInstances" => {
                if !self.spot.is_empty() {
                    let spot = "<instanceLifecycle>spot</instanceLifecycle><spotInstanceRequestId>sir-1</spotInstanceRequestId>";
                    each = each.replace("<tagSet>", &format!("{spot}<tagSet>"));
                }
                format!("<reservationSet><item><instancesSet>{each}</instancesSet></item></reservationSet>")
            }
            "DescribeInstanceAttribute" => {
                format!("<disableApiStop><value>{}</value></disableApiStop>", self.is_protected)
            }
            "DescribeSpotInstanceRequests" => {
                format!("<spotInstanceRequestSet><item>{}</item></spotInstanceRequestSet>", self.spot)
            }
            "CreateTags" | "DeleteTags" | "ModifyInstanceAttribute" => "<return>true</return>".to_owned(),
            _ => format!("<instancesSet>{each}</instancesSet>"),
        })
    }
}

impl World {
    /// The volumes that are asked for by their ids, or by the instances that have them.
    fn volumes(&self, fields: &BTreeMap<String, String>) -> Result<String, (&'static str, String)> {
        let asked = |beginning: &str| -> BTreeSet<&String> {
            fields.iter().filter(|(key, _)| key.starts_with(beginning)).map(|(_, value)| value).collect()
        };
        let (ids, instances) = (asked("VolumeId."), asked("Filter.1.Value."));
        let (mut told, mut known) = (String::new(), BTreeSet::new());
        for (instance, machine) in &self.machines {
            for (device, goes) in
                machine.volumes.iter().filter(|(device, _)| !self.unlisted.contains(*device))
            {
                let id = volume_id(device);
                if ids.contains(&id) || instances.contains(instance) {
                    told.push_str(&format!(
                        "<item><volumeId>{id}</volumeId><status>in-use</status><attachmentSet><item><instanceId>{instance}</instanceId>\
                         <device>{device}</device><status>attached</status><deleteOnTermination>{goes}</deleteOnTermination></item>\
                         </attachmentSet></item>"
                    ));
                    known.insert(id);
                }
            }
        }
        match ids.into_iter().find(|id| !known.contains(*id)) {
            Some(id) => Err(("InvalidVolume.NotFound", format!("The volume '{id}' does not exist."))),
            None => Ok(told),
        }
    }
}

fn volume_id(device: &str) -> String {
    format!("vol-{}", device.replace('/', ""))
}

fn one(
    action: &str,
    fields: &BTreeMap<String, String>,
    id: &str,
    machine: &mut Machine,
) -> Result<String, (&'static str, String)> {
    let before = machine.state;
    let tag = || (fields["Tag.1.Key"].clone(), fields["Tag.1.Value"].clone());
    match action {
        "DescribeInstances" => return Ok(shown(id, machine)),
        "StopInstances" if before == "terminated" => {
            return Err(("IncorrectInstanceState", format!("The instance '{id}' is terminated")));
        }
        "StopInstances" => machine.state = "stopped",
        "StartInstances" => machine.state = "running",
        "TerminateInstances" => {
            machine.state = "terminated";
            machine.volumes.retain(|_, goes| !*goes);
        }
        "CreateTags" => machine.tags.extend([tag()]),
        "DeleteTags" => machine.tags.retain(|key, value| (key.clone(), value.clone()) != tag()),
        "ModifyInstanceAttribute" if !machine.forgets => {
            let device = |key: &String| key.ends_with(".DeviceName");
            for name in fields.iter().filter(|(key, _)| device(key)).map(|(_, device)| device) {
                machine.volumes.insert(name.clone(), false);
            }
        }
        _ => {}
    }
    Ok(format!(
        "<item><instanceId>{id}</instanceId>{}{}</item>",
        state("currentState", machine.state),
        state("previousState", before)
    ))
}

fn shown(id: &str, machine: &Machine) -> String {
    let tags: String = machine
        .tags
        .iter()
        .map(|(key, value)| format!("<item><key>{key}</key><value>{value}</value></item>"))
        .collect();
    let volume = |(device, goes): (&String, &bool)| {
        format!(
            "<item><deviceName>{device}</deviceName><ebs><volumeId>{}</volumeId><status>attached</status>\
             <deleteOnTermination>{goes}</deleteOnTermination></ebs></item>",
            volume_id(device)
        )
    };
    let volumes: String = machine.volumes.iter().filter(|_| !machine.is_shy).map(volume).collect();
    format!(
        "<item><instanceId>{id}</instanceId>{}<rootDeviceName>/dev/xvda</rootDeviceName><rootDeviceType>ebs</rootDeviceType>\
         <blockDeviceMapping>{volumes}</blockDeviceMapping><tagSet>{tags}</tagSet></item>",
        state("instanceState", machine.shows.unwrap_or(machine.state))
    )
}
