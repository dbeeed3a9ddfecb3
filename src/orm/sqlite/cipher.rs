//! Files encrypted at rest by SQLCipher, in builds with the feature `sqlcipher`; in others no file opens with a key.
//!
//! The key comes from a file, which may be a credential of the service manager: never from an argument or a variable.
//! It is the key of the pages itself, 32 bytes, so that no password has to be stretched at each opening.

use std::fmt;

use rusqlite::Connection;
use zeroize::Zeroizing;

use super::DbError;
use crate::digest::{hex, unhex};

/// The key of a file. It is never shown, and its bytes are wiped when it ends.
#[derive(Clone, PartialEq, Eq)]
pub struct FileKey(Zeroizing<[u8; 32]>);

impl FileKey {
    /// Whether this build can seal files.
    pub const IS_OF_USE: bool = cfg!(feature = "sqlcipher");

    /// These bytes.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// What stands in a file: 64 hexadecimal digits, and perhaps the end of the line.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_end();
        let bytes = Zeroizing::new(unhex(text).ok()?);
        Some(Self::new(bytes.as_slice().try_into().ok()?))
    }

    /// As SQLCipher wants it, so that it is no password.
    pub(in crate::orm) fn literal(&self) -> Zeroizing<String> {
        let digits = Zeroizing::new(hex(self.0.as_slice()));
        Zeroizing::new(format!("x'{}'", digits.as_str()))
    }

    /// Says the key to a connection that has read nothing yet.
    #[cfg(feature = "sqlcipher")]
    pub(in crate::orm) fn unlock(&self, connection: &Connection) -> Result<(), DbError> {
        Ok(connection.pragma_update(None, "key", self.literal().as_str())?)
    }

    /// There is nothing it could be said to.
    #[cfg(not(feature = "sqlcipher"))]
    #[expect(clippy::unused_self, reason = "the other build asks it")]
    pub(in crate::orm) fn unlock(&self, _connection: &Connection) -> Result<(), DbError> {
        let what = "this build seals no files (feature sqlcipher)";
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, what).into())
    }
}

#[cfg(feature = "sqlcipher")]
pub(super) use sealing::seal;

#[cfg(feature = "sqlcipher")]
mod sealing {
    use std::fs::{self, File};
    use std::path::Path;

    use rusqlite::{Connection, OpenFlags};

    use super::super::{DbError, make_beside};
    use super::FileKey;

    /// Puts a sealed copy in the place of a file that is not sealed yet; false if it is not one of those.
    pub(in crate::orm::sqlite) fn seal(path: &Path, key: &FileKey) -> Result<bool, DbError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let plain = Connection::open_with_flags(path, flags)?;
        let number = |name: &str| plain.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let Ok(version) = number("user_version") else { return Ok(false) };
        let id = number("application_id")?;
        // nobody else may write what would not be copied
        plain.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        plain.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
        let sealed = make_beside(path)?;
        let (name, literal) = (sealed.to_string_lossy(), key.literal());
        plain.execute("ATTACH ?1 AS sealed KEY ?2", [name.as_ref(), literal.as_str()])?;
        plain.query_row("SELECT sqlcipher_export('sealed')", [], |_row| Ok(()))?;
        plain.pragma_update(Some("sealed"), "user_version", version)?;
        plain.pragma_update(Some("sealed"), "application_id", id)?;
        plain.execute_batch("DETACH sealed")?;
        // what is in the log of the plain one must not be read as a part of the other
        plain.close().map_err(|(_, error)| error)?;
        File::open(&sealed)?.sync_all()?;
        fs::rename(&sealed, path)?;
        tracing::info!(file.path = %path.display(), "a database was sealed with its key");
        Ok(true)
    }
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileKey")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Location;
    use super::*;

    pub(super) fn sealed(path: &Path, byte: u8) -> Location {
        Location::from(path).sealed_with(Some(FileKey::new(&[byte; 32])))
    }

    #[test]
    fn a_key_is_64_digits_and_is_never_shown() {
        let key = FileKey::parse(format!("{}\n", "5a".repeat(32)).as_bytes()).unwrap();
        assert_eq!(key, FileKey::new(&[0x5a; 32]));
        assert_eq!(format!("{key:?}"), "FileKey");
        for wrong in ["", "short", &"5a".repeat(31), &"5a".repeat(33), &"5g".repeat(32)] {
            assert_eq!(FileKey::parse(wrong.as_bytes()), None);
        }
    }

    #[test]
    #[cfg(not(feature = "sqlcipher"))]
    fn without_the_feature_no_key_opens_a_file() {
        use crate::orm::tests::DAIRY;
        use crate::orm::{Database, Kind};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.db");
        let refused = Database::open(sealed(&file, 1), &DAIRY).unwrap_err();
        assert_eq!(refused.kind(), Kind::Other);
        assert!(refused.to_string().contains("sqlcipher"), "{refused}");
        assert_eq!(std::fs::read(&file).unwrap(), b"", "and nothing was written in clear");
    }
}

#[cfg(all(test, feature = "sqlcipher"))]
mod tests_with_key {
    use std::path::Path;

    use super::super::Database;
    use super::tests::sealed;
    use crate::orm::tests::{Cheese, DAIRY, cheese};
    use crate::orm::{Kind, Repository, inquire};

    fn is_sealed(file: &Path) -> bool {
        let bytes = std::fs::read(file).unwrap();
        !bytes.starts_with(b"SQLite format 3") && !bytes.windows(6).any(|some| some == b"secret")
    }

    #[test]
    fn only_the_key_opens_a_sealed_file() {
        let folder = tempfile::tempdir().unwrap();
        let [file, copy] = ["x.db", "copy.db"].map(|name| folder.path().join(name));
        let database = Database::open(sealed(&file, 7), &DAIRY).unwrap();
        Repository::<Cheese>::new(&database).add(&cheese(1, "a very secret cheese", 1)).unwrap();
        database.backup(&copy).unwrap();
        drop(database);
        for file in [&file, &copy] {
            assert!(is_sealed(file));
            for refused in [Database::open(sealed(file, 1), &DAIRY), Database::open(file, &DAIRY)] {
                assert_eq!(refused.unwrap_err().kind(), Kind::Damaged);
            }
            let again = Database::open_to_read(sealed(file, 7), &DAIRY).unwrap();
            assert!(Repository::<Cheese>::new(&again).exists(&1).unwrap());
        }
        let (file, copy) = (sealed(&file, 7), sealed(&copy, 7));
        let both = "SELECT a.name || b.name FROM cheeses a JOIN other.cheeses b ON a.id = b.id";
        let found = inquire(&[("main", &file), ("other", &copy)], both, &[], 9, || false).unwrap();
        assert_eq!(found.rows.len(), 1);
    }

    #[test]
    fn a_plain_file_is_sealed_when_it_is_opened_with_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.db");
        let database = Database::open(&file, &DAIRY).unwrap();
        Repository::<Cheese>::new(&database).add(&cheese(1, "a very secret cheese", 1)).unwrap();
        drop(database);
        assert!(!is_sealed(&file));
        let database = Database::open(sealed(&file, 7), &DAIRY).unwrap();
        assert!(!database.is_fresh() && Repository::<Cheese>::new(&database).exists(&1).unwrap());
        drop(database);
        assert!(is_sealed(&file));
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing in clear is left beside it"
        );
        drop(Database::open(sealed(&file, 7), &DAIRY).unwrap());
    }
}
