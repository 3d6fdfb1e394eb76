//! What the checks are called that some peer does not show, and what no peer of a driver shows.

pub const ALREADY: &str = "already off as an error is no error";
pub const NEITHER: &str = "neither On nor Off is Unknown";
pub const RESTART: &str = "a restart begins an epoch after loss";
pub const SIGHT: &str = "after a restart no off is sent before a reading";
pub const LIFE: &str = "nothing is sent in another life than that in which it was identified";
pub const SILENT_END: &str = "a quiesce that is not answered is none";
pub const LATE_COPY: &str = "after a quiesce no late copy is executed";
pub const ON_ALONE: &str = "no session is opened for an on";
pub const FIRST_COPY: &str = "a question is as old as its first copy";
pub const DOUBLED: &str = "packets that arrive twice change nothing";
pub const SLOW_FALL: &str = "an off that takes time is not off before it is";
pub const LOST_ANSWER: &str = "an answer that is lost leaves the effect unknown";
pub const REFUSED: &str = "what is refused is not taken";
pub const REPEAT: &str = "a repeated off that is refused takes nothing back";
pub const SLOW: &str = "answers that come late are answers, and nothing is asked twice";
pub const CUT: &str = "an answer that is cut short is never Off, and shuts nobody out";
pub const REDIRECT: &str = "a redirect to the same place is followed, once";
pub const LEFT: &str = "no login leaves a session behind";
pub const CREDENTIALS: &str = "wrong credentials are said, and have no effect";

/// What no peer of a driver shows, and why that is so.
pub const SHOWN_NOWHERE: [(&str, &str, &str); 61] = [
    ("ipmi", CUT, "a datagram arrives as a whole, or not at all"),
    ("ipmi", REDIRECT, "IPMI has no paths"),
    ("redfish", LATE_COPY, "TCP delivers once, and no later than its connection lives"),
    ("redfish", DOUBLED, "the same"),
    (
        "agent",
        ALREADY,
        "drivers/agent shows it with an agent of its own: they say it with a word, and no error",
    ),
    ("agent", NEITHER, "drivers/agent shows it with an agent of its own"),
    ("agent", RESTART, "agents have no epochs"),
    ("agent", SIGHT, "agents have no epochs"),
    ("agent", LIFE, "the same"),
    ("agent", SILENT_END, "agents have no sessions"),
    ("agent", LATE_COPY, "agents have no sessions"),
    ("agent", ON_ALONE, "agents have no sessions"),
    (
        "agent",
        FIRST_COPY,
        "what one run of an agent asks again is its own affair: a reading is as old as its run",
    ),
    ("agent", DOUBLED, "the same"),
    ("agent", CREDENTIALS, "agents have one word for everything that goes wrong"),
    ("agent", REPEAT, "the same: no refusal is told as the device's own"),
    ("agent", SLOW, "a run of an agent asks in its own time"),
    ("agent", CUT, "an agent answers by its exit status, and of that there is no half"),
    ("agent", REDIRECT, "what an agent follows is its own affair"),
    ("agent", LEFT, "agents have no sessions"),
    ("aws", ALREADY, "EC2 says it with a state, and no error; of what was terminated drivers/aws shows it"),
    ("aws", RESTART, "an instance's life is its id: there is no session that could be lost"),
    ("aws", SIGHT, "the same"),
    ("aws", LIFE, "the same"),
    ("aws", SILENT_END, "EC2 has no sessions"),
    (
        "aws",
        LATE_COPY,
        "TCP delivers once; what comes late AWS refuses by its signature, which drivers/aws shows",
    ),
    ("aws", ON_ALONE, "EC2 has no sessions; that an on wants a reading before it drivers/aws shows"),
    ("aws", FIRST_COPY, "the driver sends one copy of a question"),
    ("aws", REPEAT, "EC2 takes a stop of what is stopped"),
    ("aws", SLOW, "moto's answers cannot be delayed"),
    ("aws", DOUBLED, "TCP delivers once"),
    ("aws", CUT, "what is cut is shown of its volumes"),
    ("aws", REDIRECT, "its peer redirects nothing"),
    ("aws", LEFT, "EC2 has no sessions"),
    ("gcp", ALREADY, "Compute Engine takes a stop of what is stopped"),
    ("gcp", RESTART, "an instance's life is its numeric id: there is no session that could be lost"),
    ("gcp", SIGHT, "the same"),
    ("gcp", LIFE, "the same"),
    ("gcp", SILENT_END, "Compute Engine has no sessions"),
    (
        "gcp",
        LATE_COPY,
        "TCP delivers once; what comes late is refused by its token, which drivers/gcp and tests/gcp show",
    ),
    ("gcp", ON_ALONE, "tests/gcp shows it: an on goes with no token that is newer than the store's word"),
    ("gcp", FIRST_COPY, "the driver sends one copy of a question"),
    ("gcp", REPEAT, "Compute Engine takes a stop of what is stopped"),
    ("gcp", SLOW, "the peer's answers cannot be delayed"),
    ("gcp", DOUBLED, "TCP delivers once"),
    ("gcp", CUT, "what is cut is shown of its volumes"),
    ("gcp", REDIRECT, "its peer redirects nothing"),
    ("gcp", LEFT, "Compute Engine has no sessions"),
    ("openstack", RESTART, "a cloud has one epoch: the server's id"),
    ("openstack", SIGHT, "the same"),
    ("openstack", LIFE, "the same"),
    ("openstack", SILENT_END, "a cloud has no sessions"),
    ("openstack", LATE_COPY, "tests/openstack shows what bounds them: a token that has ended"),
    (
        "openstack",
        ON_ALONE,
        "tests/openstack shows it: an on goes with no token that is newer than the store's word",
    ),
    ("openstack", FIRST_COPY, "TCP delivers once, or its connection breaks"),
    ("openstack", REPEAT, "Nova has a word for it, 409, which is read as what it says"),
    ("openstack", SLOW, "the cloud answers in its own time"),
    ("openstack", DOUBLED, "TCP delivers once, or its connection breaks"),
    ("openstack", CUT, "what is cut is shown of its volumes"),
    ("openstack", REDIRECT, "its peer redirects nothing"),
    ("openstack", LEFT, "a cloud has no sessions"),
];
