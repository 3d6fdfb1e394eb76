//! What these tests share: a fleet whose devices are agents.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use picket_tests::peers::{OPERATOR, PASSWORD, Truth};
use picket_tests::{Fleet, Gateway, PASSWORD_VARIABLE, Result, Said, Webhook};
use tempfile::TempDir;

/// What an agent of our own is told.
const WORD: &str = " s3cret-pass";

/// The node `n1` behind Debian's `fence_ipmilan`. Off must hold 5 s, the least: an agent has no epochs.
pub fn fence_ipmilan(address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!(
        "[nodes.n1]\nlevels = [[\"bmc\"]]\nreleases = [\"detach\"]\n[nodes.n1.devices.bmc]\ndriver = \"agent\"\n\
         agent = \"fence_ipmilan\"\npassword_env = {PASSWORD_VARIABLE:?}\nlongest_cycle = \"5s\"\n\
         [nodes.n1.devices.bmc.parameters]\nip = \"{ip}\"\nipport = {port}\nusername = {OPERATOR:?}\n\
         privlvl = \"operator\"\ncipher = \"3\"\nlanplus = true\npower_wait = 0\n"
    )
}

/// A fleet of these nodes, whose volumes go at once.
pub fn fleet(nodes: &str, webhook: &Webhook) -> Fleet {
    assert!(!nodes.contains(PASSWORD), "it stands in the environment alone");
    Fleet::new().with(nodes).webhook("detach", &webhook.url(), "settle = \"0s\"")
}

/// `picket fence n1`, or whatever else, and what it says.
pub async fn said_to(gateway: &Gateway, what: &str) -> Result<Said> {
    gateway.picket(&[what, "n1", "--yes", "--reason", "a test"]).await
}

/// The agent of the driver's own tests (`drivers/agent/tests/fence_fake.sh`), in a world of its own.
pub struct Fake(TempDir);

impl Fake {
    pub fn new() -> Self {
        let world = tempfile::Builder::new().prefix("picket-agent-").tempdir().expect("a directory");
        let fake = Self(world);
        std::fs::write(fake.file("power"), "on\n").expect("it can be written");
        std::fs::write(fake.file("password"), WORD).expect("it can be written");
        let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(fake.file("password"), mode).expect("it is ours");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../drivers/agent/tests/fence_fake.sh");
        // Not the checkout's own, whose directories somebody else may write; and by another process, since one that a test beside this one starts
        // may hold a file open that we write.
        let copied = std::process::Command::new("cp").arg(program).arg(fake.file("fence_fake")).status();
        assert!(copied.expect("cp").success());
        fake
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The node `n1` behind it.
    pub fn node(&self) -> String {
        self.node_with("max_life = \"7s\"\n")
    }

    /// A node of that name behind it.
    pub fn node_named(&self, name: &str) -> String {
        self.node().replace("nodes.n1", &format!("nodes.{name}"))
    }

    /// From now on its runs count with all others that count there.
    pub fn counts_in(&self, directory: &Path) {
        std::os::unix::fs::symlink(directory, self.file("running")).expect("a link");
    }

    /// How many ran at once, as each of its runs saw it when it began.
    pub fn counted(&self) -> Vec<usize> {
        let text = std::fs::read_to_string(self.file("counts")).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// The same, where nobody vouches for what a killed agent had sent.
    pub fn node_without_max_life(&self) -> String {
        self.node_with("")
    }

    fn node_with(&self, max_life: &str) -> String {
        let (world, password) = (self.0.path(), self.file("password"));
        format!(
            "[nodes.n1]\nreleases = [\"detach\"]\n[nodes.n1.devices.bmc]\ndriver = \"agent\"\nagent = \"fence_fake\"\n\
             trust_agent = \"fence_fake\"\nclass = \"host\"\ndirectory = {world:?}\npassword_file = {password:?}\n\
             parameters = {{ ip = {world:?} }}\nlongest_cycle = \"5s\"\ncall = \"8s\"\n{max_life}"
        )
    }

    /// From now on it answers nothing where it is told this action; what it starts then is told by [`children`](Self::children).
    pub fn fall_silent_when_told(&self, action: &str) {
        std::fs::write(self.file(&format!("silent-{action}")), "").expect("it can be written");
    }

    /// Another program takes its place, as a package's upgrade puts it there: it knows no password any more.
    pub fn is_replaced(&self) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../drivers/agent/tests/fence_fake.sh");
        // By another process: one that a test beside this one starts may hold a file open that we write, which cannot be run then.
        let script = "sed 's/parameter name=.password./parameter name=\"passphrase\"/' \"$0\" >\"$1\" && chmod 755 \"$1\" && mv \"$1\" \"$2\"";
        let wrote = Command::new("sh")
            .args(["-c", script])
            .args([program, self.file("fence_new"), self.file("fence_fake")])
            .status();
        assert!(wrote.expect("a shell").success());
    }

    /// It goes on as it should.
    pub fn mend(&self) {
        for trouble in ["silent", "silent-off", "silent-on"] {
            let _ = std::fs::remove_file(self.file(trouble));
        }
    }

    /// The offs and ons that it carried out.
    pub fn commands(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file("commands")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Programs that agents had started and that still ran when it carried out an on.
    pub fn outlived(&self) -> String {
        std::fs::read_to_string(self.file("outlived")).unwrap_or_default()
    }

    /// Whether its machine is on, for whoever outlives this borrow.
    pub fn truth(&self) -> Truth {
        let power = self.file("power");
        Arc::new(move || std::fs::read_to_string(&power).map_or(true, |text| text.trim() == "on"))
    }

    /// From now on it answers nothing, and starts a program that would run for a quarter of an hour.
    pub fn fall_silent(&self) {
        std::fs::write(self.file("silent"), "").expect("it can be written");
    }

    /// The programs that it started while it was silent.
    pub fn children(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.file("children")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// Whether a process runs: one that died and was not waited for does not.
pub fn runs(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
