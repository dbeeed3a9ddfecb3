//! Files encrypted at rest by SQLCipher, for builds with the feature `sqlcipher`.
//!
//! The key comes from a file, which may be a credential of the service manager: never from an argument or a variable.
//! It is the key of the pages itself, 32 bytes, so that no password has to be stretched at each opening.

use std::fmt;
use std::io;
use std::path::Path;

use rusqlite::Connection;
use zeroize::Zeroizing;

use super::DbError;
use crate::digest::{hex, unhex};

/// The key of a file. It is never shown, and its bytes are wiped when it ends.
#[derive(Clone)]
pub struct FileKey(Zeroizing<[u8; 32]>);

impl FileKey {
    /// These bytes.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// What stands in a file: 64 hexadecimal digits, and perhaps the end of the line.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = Zeroizing::new(std::fs::read_to_string(path)?);
        let bytes = unhex(text.trim_end()).ok().map(Zeroizing::new);
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok());
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a key is 64 hexadecimal digits");
        bytes.map(|bytes| Self::new(&bytes)).ok_or_else(wrong)
    }

    /// Says the key to a connection that has read nothing yet.
    pub(super) fn unlock(&self, connection: &Connection) -> Result<(), DbError> {
        let digits = Zeroizing::new(hex(self.0.as_slice()));
        let literal = Zeroizing::new(format!("x'{}'", digits.as_str()));
        Ok(connection.pragma_update(None, "key", literal.as_str())?)
    }
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileKey")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Database;
    use super::*;
    use crate::orm::tests::{Cheese, DAIRY, cheese};
    use crate::orm::{Kind, Repository};

    #[test]
    fn only_the_key_opens_a_sealed_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, key_file) = (folder.path().join("x.db"), folder.path().join("key"));
        std::fs::write(&key_file, format!("{}\n", "5a".repeat(32))).unwrap();
        let key = FileKey::read(&key_file).unwrap();
        let database = Database::open_sealed(&file, &DAIRY, &key).unwrap();
        Repository::<Cheese>::new(&database).add(&cheese(1, "a very secret cheese", 1)).unwrap();
        database.backup(&folder.path().join("copy.db")).unwrap();
        drop(database);
        for file in ["x.db", "copy.db"] {
            let file = folder.path().join(file);
            let bytes = std::fs::read(&file).unwrap();
            assert!(!bytes.starts_with(b"SQLite format 3"));
            assert!(!bytes.windows(6).any(|some| some == b"secret"));
            let again = Database::open_sealed(&file, &DAIRY, &key).unwrap();
            assert!(Repository::<Cheese>::new(&again).exists(&1).unwrap());
            let other = FileKey::new(&[1; 32]);
            for refused in [Database::open_sealed(&file, &DAIRY, &other), Database::open(&file, &DAIRY)] {
                assert_eq!(refused.unwrap_err().kind(), Kind::Damaged);
            }
        }
        assert_eq!(format!("{key:?}"), "FileKey");
        std::fs::write(&key_file, "short").unwrap();
        assert!(FileKey::read(&key_file).is_err());
    }
}
