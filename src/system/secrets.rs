//! Keys from the environment, from files, and from the system's keyring.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::provider::{HeaderValue, RequestLine};
use crate::repo::SecretRef;
use crate::runtime::secret::{SecretError, SecretString, Secrets};

use super::{bounded, words};

/// The maximum length of a key in bytes. A larger file contains something else.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Reads the keys that this process has access to.
#[derive(Debug, Clone)]
pub struct SystemSecrets {
    root: PathBuf,
}

impl SystemSecrets {
    /// Returns a reader in which relative paths of `file:` references are relative to `root`, the
    /// agent repository.
    pub fn new(root: impl Into<PathBuf>) -> SystemSecrets {
        SystemSecrets { root: root.into() }
    }

    /// Returns a warning if other users of the machine can read a key; otherwise `None`.
    pub fn remark(&self, reference: &SecretRef) -> Option<String> {
        let SecretRef::File(path) = reference else {
            return None;
        };
        let path = self.path(path).ok()?;
        is_open_to_all(&path)
            .then(|| format!("every user of this machine can read `{}`", path.display()))
    }

    /// Returns the file to which a reference refers, with links resolved; `None` if the reference
    /// does not name a file.
    pub fn file_of(&self, reference: &SecretRef) -> Option<PathBuf> {
        let SecretRef::File(path) = reference else {
            return None;
        };
        let path = self.path(path).ok()?;
        Some(fs::canonicalize(&path).unwrap_or(path))
    }

    /// Returns the file that contains the key for a request's headers; `None` if the key is not in
    /// a file.
    pub fn file_of_line(&self, line: &RequestLine) -> Option<PathBuf> {
        line.headers.iter().find_map(|header| match &header.value {
            HeaderValue::Key { key, .. } => self.file_of(key),
            HeaderValue::Plain(_) => None,
        })
    }

    /// Checks that the file named by a reference exists and may contain a key. The file is not
    /// opened, because the user may not have permitted that yet. Other kinds of references are not
    /// checked.
    ///
    /// # Errors
    ///
    /// Returns why the file is missing or cannot contain a key.
    pub fn look_for_file(&self, reference: &SecretRef) -> Result<(), SecretError> {
        match reference {
            SecretRef::File(path) => Self::found(&self.path(path)?),
            _ => Ok(()),
        }
    }

    /// Returns an error unless the path names a file that may contain a key.
    fn found(path: &Path) -> Result<(), SecretError> {
        match fs::metadata(path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Err(SecretError::Missing(format!(
                    "there is no key file `{}`: write the key into it",
                    path.display()
                )))
            }
            Err(error) => Err(unreadable(path, &words(&error))),
            Ok(found) if !found.is_file() => Err(unreadable(path, "it is not a regular file")),
            Ok(found) if found.len() > MAX_KEY_BYTES => {
                Err(unreadable(path, "it is too large for a key"))
            }
            Ok(_) => Ok(()),
        }
    }

    fn path(&self, path: &str) -> Result<PathBuf, SecretError> {
        match path.strip_prefix("~/") {
            Some(rest) => match std::env::home_dir() {
                Some(home) => Ok(home.join(rest)),
                None => Err(SecretError::Missing(format!(
                    "`file:{path}` is in the home folder, which cannot be determined"
                ))),
            },
            None => Ok(self.root.join(path)),
        }
    }

    fn file(&self, path: &str) -> Result<SecretString, SecretError> {
        let path = self.path(path)?;
        let shown = path.display();
        Self::found(&path)?;
        let bytes = bounded::read(&path, MAX_KEY_BYTES)
            .map_err(|why| unreadable(&path, &why.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable(&path, "it is not UTF-8"))?;
        key(
            &text,
            &format!("the key file `{shown}`"),
            "write the key into it",
        )
    }
}

fn unreadable(path: &Path, why: &str) -> SecretError {
    SecretError::Unreadable(format!(
        "the key file `{}` cannot be read: {why}",
        path.display()
    ))
}

impl Secrets for SystemSecrets {
    fn read(&self, reference: &SecretRef) -> Result<SecretString, SecretError> {
        match reference {
            SecretRef::Env(name) => variable(name),
            SecretRef::File(path) => self.file(path),
            SecretRef::Keyring { service, user } => keyring(service, user),
        }
    }
}

fn variable(name: &str) -> Result<SecretString, SecretError> {
    match std::env::var(name) {
        Ok(text) => key(
            &text,
            &format!("the environment variable `{name}`"),
            "set it to the key",
        ),
        Err(std::env::VarError::NotPresent) => Err(SecretError::Missing(format!(
            "the environment variable `{name}` is not set: set it to the key"
        ))),
        Err(std::env::VarError::NotUnicode(_)) => Err(SecretError::Unreadable(format!(
            "the environment variable `{name}` is not UTF-8"
        ))),
    }
}

/// Returns a key without the line ending that editors and shells add.
fn key(text: &str, place: &str, what_to_do: &str) -> Result<SecretString, SecretError> {
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() {
        return Err(SecretError::Missing(format!(
            "{place} is empty: {what_to_do}"
        )));
    }
    if text.contains(|c: char| c.is_control()) {
        return Err(SecretError::Unreadable(format!(
            "{place} contains more than one line, or control characters"
        )));
    }
    Ok(text.into())
}

#[cfg(feature = "keyring")]
fn keyring(service: &str, user: &str) -> Result<SecretString, SecretError> {
    let entry = format!("the keyring entry of `{user}` in the service `{service}`");
    match keyring::Entry::new(service, user).and_then(|entry| entry.get_password()) {
        Ok(text) => key(&text, &entry, "store the key there"),
        Err(keyring::Error::NoEntry) => Err(SecretError::Missing(format!(
            "{entry} does not exist: store the key there"
        ))),
        // The error contains the stored value, so do not display it.
        Err(keyring::Error::BadEncoding(_)) => {
            Err(SecretError::Unreadable(format!("{entry} is not UTF-8")))
        }
        Err(error) => Err(SecretError::Unreadable(format!(
            "{entry} cannot be read: {error}"
        ))),
    }
}

#[cfg(not(feature = "keyring"))]
fn keyring(service: &str, user: &str) -> Result<SecretString, SecretError> {
    Err(SecretError::Unreadable(format!(
        "`keyring:{service}/{user}` cannot be read: this reqc was built without the `keyring` feature; use \
         `env:NAME` or `file:PATH`"
    )))
}

#[cfg(unix)]
fn is_open_to_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::secret::ExposeSecret;

    fn read(root: &Path, path: &str) -> Result<String, SecretError> {
        let found = SystemSecrets::new(root).read(&SecretRef::File(path.into()));
        found.map(|key| key.expose_secret().to_owned())
    }

    #[test]
    fn files_are_read_without_their_line_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, bytes: &[u8]| {
            fs::write(folder.path().join(name), bytes).expect("writable");
        };
        write("key", b"abc\r\n");
        write("empty", b"\n");
        write("lines", b"abc\ndef\n");
        write("bytes", b"abc\xff");
        write("large", &vec![b'a'; 70_000]);
        assert_eq!(read(folder.path(), "key"), Ok("abc".to_owned()));
        assert_eq!(
            read(
                Path::new("/nowhere"),
                &folder.path().join("key").to_string_lossy()
            ),
            Ok("abc".to_owned())
        );
        for missing in ["empty", "none", "key/none"] {
            assert!(
                matches!(read(folder.path(), missing), Err(SecretError::Missing(_))),
                "{missing}"
            );
        }
        for unreadable in ["lines", "bytes", "large", "."] {
            let error = read(folder.path(), unreadable).expect_err(unreadable);
            assert!(
                matches!(&error, SecretError::Unreadable(_)) && !error.to_string().contains("abc"),
                "{error}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_everybody_can_read_is_remarked() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        fs::write(&path, "abc").expect("writable");
        let secrets = SystemSecrets::new(folder.path());
        let mode = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own file");
        };
        mode(0o644);
        assert!(secrets.remark(&SecretRef::File("key".into())).is_some());
        mode(0o600);
        assert_eq!(secrets.remark(&SecretRef::File("key".into())), None);
    }

    #[test]
    fn variables_that_are_not_set_are_missing() {
        let error = variable("REQC_TEST_NO_SUCH_VARIABLE").expect_err("nobody sets it");
        assert_eq!(
            error.to_string(),
            "the environment variable `REQC_TEST_NO_SUCH_VARIABLE` is not set: set it to the key"
        );
    }
}
