//! The files of keys and certificates: written whole or not at all, keys for their owner alone.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use super::{Pin, TlsError, authority};

/// A private key of the one kind we make.
pub(super) fn read_key(path: &Path) -> Result<KeyPair, TlsError> {
    let pem = Zeroizing::new(fs::read(path).map_err(TlsError::file(path))?);
    keep_private(path);
    let content = || TlsError::Content { path: path.to_owned(), what: "ECDSA P-256 key in PEM form" };
    let der = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|_ignored| content())?;
    KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ECDSA_P256_SHA256).map_err(|_ignored| content())
}

/// A key that others could read is theirs too: the mode is mended, and the administrator told.
fn keep_private(path: &Path) {
    let open = fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    if open {
        match fs::set_permissions(path, Permissions::from_mode(0o600)) {
            Ok(()) => {
                tracing::warn!(path = %path.display(), "a private key was readable by others: mode set to 0600")
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a private key is readable by others");
            }
        }
    }
}

/// The certificate of the key with this pin; none where there is none that fits.
pub(super) fn read_certificate(path: &Path, pin: &Pin) -> Option<CertificateDer<'static>> {
    let certificate = CertificateDer::from_pem_slice(&fs::read(path).ok()?).ok()?;
    (authority::pin_of_certificate(&certificate)? == *pin).then_some(certificate)
}

/// A finished file under a temporary name, removed again unless it gets its own.
pub(super) struct Staged(PathBuf);

impl Staged {
    /// What root writes into a service's folder belongs to the service, which could not read it else.
    pub(super) fn write(target: &Path, content: &[u8], mode: u32) -> io::Result<Self> {
        let tag = getrandom::u64().map_err(io::Error::other)?;
        let path = target.with_extension(format!("{tag:016x}.new"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        let staged = Self(path);
        give_to_owner_of_folder(&file, target)?;
        file.write_all(content)?;
        file.sync_all()?;
        Ok(staged)
    }

    pub(super) fn claim(self, target: &Path) -> io::Result<()> {
        fs::hard_link(&self.0, target)?;
        sync_folder(target)
    }

    pub(super) fn replace(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.0, target)?;
        sync_folder(target)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(path = %self.0.display(), %error, "a temporary file stays behind");
        }
    }
}

fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn give_to_owner_of_folder(file: &File, target: &Path) -> io::Result<()> {
    let Some(folder) = target.parent() else { return Ok(()) };
    let (own, folder) = (file.metadata()?, fs::metadata(folder)?);
    if own.uid() == folder.uid() {
        return Ok(());
    }
    fchown(file, Some(folder.uid()), Some(folder.gid()))
}
