//! The system's list of trusted authorities: where it is, whether ours is in it, and the steps that change it.
//!
//! Deciding and doing are apart: what is to be done is a list of [`Step`]s, each of which reads as the command
//! that a person would type.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::digest::Digest;

/// How one family of systems keeps its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Family {
    /// Where an administrator puts certificates.
    anchors: &'static str,
    /// What makes the list anew, after one was added and after one was taken out.
    update: &'static [&'static str],
    update_after_removal: &'static [&'static str],
    /// The list as one file, for programs that want one.
    bundle: &'static str,
}

const FAMILIES: [Family; 4] = [
    // Fedora, Red Hat
    Family {
        anchors: "etc/pki/ca-trust/source/anchors",
        update: &["update-ca-trust", "extract"],
        update_after_removal: &["update-ca-trust", "extract"],
        bundle: "etc/pki/tls/certs/ca-bundle.crt",
    },
    // Arch
    Family {
        anchors: "etc/ca-certificates/trust-source/anchors",
        update: &["update-ca-trust"],
        update_after_removal: &["update-ca-trust"],
        bundle: "etc/ssl/certs/ca-certificates.crt",
    },
    // SUSE
    Family {
        anchors: "etc/pki/trust/anchors",
        update: &["update-ca-certificates"],
        update_after_removal: &["update-ca-certificates", "-f"],
        bundle: "var/lib/ca-certificates/ca-bundle.pem",
    },
    // Debian, Ubuntu, Alpine
    Family {
        anchors: "usr/local/share/ca-certificates",
        update: &["update-ca-certificates"],
        update_after_removal: &["update-ca-certificates", "--fresh"],
        bundle: "etc/ssl/certs/ca-certificates.crt",
    },
];

/// The list of one system, seen from one node.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct TrustStore {
    family: Family,
    /// Where this node's certificate is put.
    pub(in crate::cli) anchor: PathBuf,
    /// The list as one file.
    pub(in crate::cli) bundle: PathBuf,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A file for everybody to read.
    Copy { from: PathBuf, to: PathBuf },
    /// A file less.
    Remove(PathBuf),
    /// A program of the system's.
    Run(&'static [&'static str]),
}

impl TrustStore {
    /// The list of the system below `root`, if it has one of a kind that is known.
    pub(in crate::cli) fn find(root: &Path, state_dir: &Path) -> Option<Self> {
        let family = FAMILIES.into_iter().find(|family| root.join(family.anchors).is_dir())?;
        // Nodes of one machine have certificates of their own.
        let mark: String =
            Digest::of(state_dir.as_os_str().as_encoded_bytes()).hex().chars().take(8).collect();
        let anchor = root.join(family.anchors).join(format!("larder-{mark}.crt"));
        Some(Self { family, anchor, bundle: root.join(family.bundle) })
    }

    /// Whether the system's programs trust this certificate.
    pub(in crate::cli) fn trusts(&self, pem: &str) -> bool {
        let bundle = fs::read_to_string(&self.bundle).unwrap_or_default();
        is_at(&self.anchor, pem) && !pem.trim().is_empty() && bundle.contains(pem.trim())
    }

    /// Whether there is a certificate of this node, be it the right one or not.
    pub(in crate::cli) fn has_any(&self) -> bool {
        self.anchor.exists()
    }

    /// What makes the system trust this certificate, which stands in `file`; nothing where it does.
    pub(super) fn adding(&self, file: &Path, pem: &str) -> Vec<Step> {
        if self.trusts(pem) {
            return Vec::new();
        }
        let copy = Step::Copy { from: file.to_owned(), to: self.anchor.clone() };
        let copy = (!is_at(&self.anchor, pem)).then_some(copy);
        copy.into_iter().chain([Step::Run(self.family.update)]).collect()
    }

    /// What makes the system forget this node's certificate; nothing where it has none.
    pub(super) fn removing(&self) -> Vec<Step> {
        if !self.has_any() {
            return Vec::new();
        }
        vec![Step::Remove(self.anchor.clone()), Step::Run(self.family.update_after_removal)]
    }
}

fn is_at(path: &Path, pem: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|there| there.trim() == pem.trim())
}

impl Step {
    /// Does it; what a program has to say goes to standard error.
    pub(super) fn perform(&self) -> io::Result<()> {
        match self {
            Self::Copy { from, to } => {
                let new = to.with_extension("new");
                fs::copy(from, &new)?;
                fs::set_permissions(&new, fs::Permissions::from_mode(0o644))?;
                fs::rename(&new, to)
            }
            Self::Remove(path) => fs::remove_file(path),
            Self::Run(words) => run(words),
        }
    }
}

fn run(words: &[&str]) -> io::Result<()> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin"));
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: {}", output.status, said.trim())))
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { from, to } => write!(f, "install -m 644 {} {}", from.display(), to.display()),
            Self::Remove(path) => write!(f, "rm {}", path.display()),
            Self::Run(words) => f.write_str(&words.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    fn system(anchors: &str) -> (tempfile::TempDir, TrustStore) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(anchors)).unwrap();
        let store = TrustStore::find(root.path(), Path::new("/var/lib/larder")).unwrap();
        fs::create_dir_all(store.bundle.parent().unwrap()).unwrap();
        fs::write(root.path().join("ca.crt"), PEM).unwrap();
        (root, store)
    }

    #[test]
    fn each_family_is_known_by_its_folder() {
        for (anchors, update, bundle) in [
            (
                "usr/local/share/ca-certificates",
                "update-ca-certificates",
                "etc/ssl/certs/ca-certificates.crt",
            ),
            ("etc/pki/ca-trust/source/anchors", "update-ca-trust extract", "etc/pki/tls/certs/ca-bundle.crt"),
            (
                "etc/ca-certificates/trust-source/anchors",
                "update-ca-trust",
                "etc/ssl/certs/ca-certificates.crt",
            ),
            ("etc/pki/trust/anchors", "update-ca-certificates", "var/lib/ca-certificates/ca-bundle.pem"),
        ] {
            let (root, store) = system(anchors);
            let steps = store.adding(&root.path().join("ca.crt"), PEM);
            assert_eq!(steps.last().unwrap().to_string(), update);
            assert!(store.anchor.starts_with(root.path().join(anchors)));
            assert_eq!(store.bundle, root.path().join(bundle));
        }
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(TrustStore::find(nothing.path(), Path::new("/x")), None);
    }

    #[test]
    fn steps_are_those_that_are_still_to_be_done() {
        let (root, store) = system("usr/local/share/ca-certificates");
        let file = root.path().join("ca.crt");
        assert_eq!(store.removing(), []);
        let steps = store.adding(&file, PEM);
        assert_eq!(steps.len(), 2);
        assert!(steps[0].to_string().starts_with("install -m 644 "), "{}", steps[0]);
        steps[0].perform().unwrap();
        let mode = fs::metadata(&store.anchor).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert!(store.has_any() && !store.trusts(PEM));
        assert_eq!(store.adding(&file, PEM).len(), 1, "the list was not made anew");
        fs::write(&store.bundle, format!("# other\n{PEM}")).unwrap();
        assert!(store.trusts(PEM));
        assert_eq!(store.adding(&file, PEM), []);
        let other = PEM.replace("AAAA", "BBBB");
        assert_eq!(store.adding(&file, &other).len(), 2, "another certificate takes its place");
        let steps = store.removing();
        assert_eq!(steps[1].to_string(), "update-ca-certificates --fresh");
        steps[0].perform().unwrap();
        assert_eq!(store.removing(), []);
    }

    #[test]
    fn two_nodes_of_a_machine_do_not_share_a_name() {
        let (root, store) = system("usr/local/share/ca-certificates");
        let other = TrustStore::find(root.path(), Path::new("/elsewhere")).unwrap();
        assert_ne!(store.anchor, other.anchor);
    }
}
