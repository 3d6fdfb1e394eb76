//! The usage text.

/// `cargo xtask help` prints it.
pub const USAGE: &str = "\
usage: cargo xtask <command>

  demo [--yes] [--keep]       fences a virtual machine before your eyes: gateway, simulated BMC, proof, and back
  demo --ha [--yes]           by three gateways with a webhook, of which the leader is killed in the middle of the fence
  demo --kubernetes [--without-proof] [--yes]
                              on a real cluster: a StatefulSet comes back with its disk; or, by the taint alone, two
                              machines write to it. Wants root
  test [--yes]                the landing set: what decides whether a change is right (tests/README.md says why)
  test --all                  everything there is
  test NAME...                what has one of these words in the name of its test, program or package
  test --changed[=REVISION]   what the change since the main branch, or a revision, can touch
  test --list                 which tests are in which set, and why
  test --first ...            until the first fails
  mutants [--resume] [RULE... | --all]
                              weakens each rule of the law in one line of the product, and tells which test sees it.
                              With RULE or --all: in every line of tests/mutants.txt. --resume goes on where an earlier
                              call at this commit was ended
  flaky [--runs N] [--busy K] [--resume] [--all | NAME...]
                              the same tests N times (20), with K processes that compute beside them (0): what failed how often.
                              --resume adds to the runs of this commit that are kept
  soak [--yes] [NAME...]      everything with the long counts
  soak ha [--runs N] [--seed S]
                              random runs of three gateways and three members of etcd that die, freeze and are cut off,
                              300 without a number, and then every named step; what was met is added up
  soak kubernetes [--runs N]  a database on a real cluster whose node fails and comes back, so often in a row (20 without a
                              number) by each of: a killed kubelet, a cut network, a machine that stands still. Wants root
  soak story                  a cluster in a cloud whose CSI controller sleeps: what acts in its place once its time is over. Wants root
  soak thousand               picket-controller before a thousand Nodes, where the tests have four hundred
  sim [--histories N] [--seed S] [--threads T] [--log]
                              histories of several gateways in simulated time, from seed S on; --seed alone replays one
  bench [--yes] [NAME ...]    measures beside what others wrote; without a name: which benches there are
  image [--out DIR] [--profile NAME] [--from DIR]
                              OCI image archives of what runs in clusters, for ctr images import and podman load, without
                              a container engine; of the profile release unless another one is named, or of programs that
                              are built already
  package [--out DIR] [--check] [--from DIR] [--revision N] [--yes]
                              a .deb, an .rpm, a tarball, the image, an SBOM and SHA256SUMS, of programs that run from glibc
                              2.28 on; into target/packages unless DIR is named. --check makes all of it twice, and compares;
                              --from takes programs that are built already
  verify                      formatting, clippy, documentation, pages, licences; changes nothing
  fix                         formats, and lets clippy mend what it can
  site [--out DIR]            the pages as a site, by mdBook, which is built on first use
  pages                       writes the pages and the schema that are made from the sources

  --yes     installs missing Debian packages without asking
  --keep    leaves the demonstration running, to play with";
