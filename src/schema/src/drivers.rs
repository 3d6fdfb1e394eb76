//! The keys of drivers of machines, outlets and programs.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{Duration, Flag, Integer, IntegerLists, ScalarMap, Text, Texts, Word};
use crate::{Key, key};

const HOST: Key = key("host", Text, Required, "The address or name, no URL.");
const PASSWORD: [Key; 3] = [
    key(
        "password_file",
        Text,
        Nothing,
        "The file that holds the password, mode 0600; one of the three is required.",
    ),
    key("password_env", Text, Nothing, "The variable of the environment that holds it."),
    key("password_credential", Text, Nothing, "The systemd credential that holds it."),
];

/// `driver = "ipmi"`.
pub const IPMI: &[Key] = &[
    HOST,
    key("port", Integer(1, 65_535), Value("623"), "The UDP port."),
    key("username", Text, Required, "The user, of at most 16 bytes."),
    PASSWORD[0],
    PASSWORD[1],
    PASSWORD[2],
    key(
        "kg_file",
        Text,
        Nothing,
        "The file that holds the BMC key: text, or 0x and hexadecimal digits; at most 20 bytes.",
    ),
    key(
        "cipher_suites",
        IntegerLists(&[&[17], &[17, 3], &[3]]),
        Value("[17]"),
        "The cipher suites, in the order of trying.",
    ),
    key(
        "privilege",
        Word(&["operator", "administrator"]),
        Value("\"operator\""),
        "The privilege; administrator only where the button is to be locked and the BMC wants it.",
    ),
    key(
        "idle_limit",
        Duration("1s", "1h"),
        Value("\"1m\""),
        "The time after which the BMC ends a silent session; never less than its own limit.",
    ),
    key("hold", Flag, Value("true"), "The BMC is told to keep the machine off."),
];

/// `driver = "redfish"`.
pub const REDFISH: &[Key] = &[
    HOST,
    key("port", Integer(1, 65_535), Value("443"), "The TCP port."),
    key(
        "system",
        Text,
        Computed("the only one"),
        "The id of the computer system: what stands last in its path.",
    ),
    key("username", Text, Required, "The user; its role must be allowed to reset."),
    PASSWORD[0],
    PASSWORD[1],
    PASSWORD[2],
    key(
        "authentication",
        Word(&["session", "session_or_basic", "basic"]),
        Value("\"session\""),
        "By a token; or by name and password where no session is to be had; or always by name and password.",
    ),
    key(
        "session_timeout",
        Duration("1s", "1d"),
        Value("\"30m\""),
        "The time after which the service ends an idle session; never less than its SessionTimeout.",
    ),
    key(
        "max_life",
        Duration("5s", "1d"),
        Computed("nothing bounds it"),
        "The time after which a command without a session cannot land; not with \"session\".",
    ),
    key(
        "ca_file",
        Text,
        Computed("the system's CAs"),
        "The CAs that vouch for the service, or its own certificate alone.",
    ),
    key(
        "certificate_sha256",
        Text,
        Nothing,
        "The SHA-256 of the only certificate that is taken, in 64 hexadecimal digits.",
    ),
    key(
        "accept_any_certificate",
        Flag,
        Value("false"),
        "Any certificate is taken, and an Off is claimed rather than observed.",
    ),
    key(
        "last_reset_time",
        Flag,
        Computed("checks find out"),
        "The manager's LastResetTime shows its restarts. true: it must. false: it is never asked.",
    ),
    key("hold", Flag, Value("true"), "The service is told to leave the machine off when power comes back."),
];

/// `driver = "agent"`.
pub const AGENT: &[Key] = &[
    key("agent", Text, Required, "The fence agent's program."),
    key("directory", Text, Value("\"/usr/sbin\""), "The directory of the program."),
    key(
        "parameters",
        ScalarMap,
        Nothing,
        "The agent's parameters; a secret x of it is named by x_file, x_env or x_credential beside them.",
    ),
    key(
        "max_life",
        Duration("1s", "1d"),
        Computed("nothing bounds it"),
        "The time for which what a killed agent sent may still take effect.",
    ),
    key("env", Texts, Nothing, "Names of variables that it inherits besides PATH."),
    key(
        "trust_agent",
        Text,
        Nothing,
        "The name again of an agent that is not on the list; its Off is claimed.",
    ),
    key(
        "class",
        Word(&["host", "supply"]),
        Computed("as the list has it"),
        "What it speaks of: the machine or an outlet.",
    ),
];

/// `driver = "sim"`.
pub const SIM: &[Key] = &[
    key("machine", Text, Required, "The simulated machine."),
    key(
        "class",
        Word(&["host", "supply"]),
        Value("\"host\""),
        "What the device is: the machine's own or an outlet.",
    ),
    key("device", Text, Computed("the machine's name; of an outlet with -outlet"), "The device's own name."),
    key("runs_on", Text, Nothing, "The simulated machine on which it runs."),
    key("latency", Duration("0ms", "60s"), Value("\"1ms\""), "The time there and back."),
];

/// `driver = "parent"`.
pub const PARENT: &[Key] = &[
    key(
        "placement",
        Text,
        Computed("the only one that can"),
        "The node's device that tells where it runs: a cloud's, not a BMC.",
    ),
    key(
        "node",
        Text,
        Computed("by the labels hypervisor and hypervisor_of, or by name"),
        "The only node on which it may run.",
    ),
    key(
        "grade",
        Word(&["hypervisor", "learned", "claimed"]),
        Value("\"hypervisor\""),
        "The least grade of the parent's own evidence.",
    ),
];
