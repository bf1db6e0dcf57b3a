//! JSON pointers (RFC 6901).

use std::cmp::Ordering;
use std::fmt;

use percent_encoding::percent_decode_str;

/// A JSON pointer: the path to a value in a document. The root is `""`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pointer(String);

impl Pointer {
    /// Returns the pointer to the whole document.
    pub fn root() -> Pointer {
        Pointer::default()
    }

    /// Returns the pointer in a URI fragment (RFC 6901, section 6), for example `/$defs/a` for
    /// `#/$defs/a`. Returns `None` for a reference to another document.
    pub(crate) fn of_fragment(reference: &str) -> Option<Pointer> {
        let fragment = percent_decode_str(reference.strip_prefix('#')?);
        Some(Pointer(fragment.decode_utf8().ok()?.into_owned()))
    }

    /// Returns the pointer to a member of the object that this pointer refers to.
    #[must_use]
    pub fn member(&self, key: &str) -> Pointer {
        match key.bytes().any(|byte| byte == b'~' || byte == b'/') {
            true => Pointer(format!(
                "{}/{}",
                self.0,
                key.replace('~', "~0").replace('/', "~1")
            )),
            false => Pointer([&self.0, "/", key].concat()),
        }
    }

    /// Returns the pointer to an element of the array that this pointer refers to.
    #[must_use]
    pub fn element(&self, index: usize) -> Pointer {
        Pointer(format!("{}/{index}", self.0))
    }

    /// Appends a pointer that is relative to the value at this pointer.
    #[must_use]
    pub fn join(&self, inner: &Pointer) -> Pointer {
        Pointer([self.0.as_str(), &inner.0].concat())
    }

    /// Returns the pointer as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the unescaped tokens, outermost first.
    pub fn tokens(&self) -> impl Iterator<Item = String> + '_ {
        self.0
            .split('/')
            .skip(1)
            .map(|token| match token.contains('~') {
                true => token.replace("~1", "/").replace("~0", "~"),
                false => token.to_owned(),
            })
    }

    /// Returns this pointer relative to `container`; `None` if it does not refer to a value inside
    /// it.
    pub fn below(&self, container: &Pointer) -> Option<Pointer> {
        let rest = self.0.strip_prefix(&container.0)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| Pointer(rest.to_owned()))
    }

    /// Removes `inner` from the end of this pointer; `None` if the pointer does not end with it.
    pub(crate) fn without_end(&self, inner: &Pointer) -> Option<Pointer> {
        self.0
            .strip_suffix(&inner.0)
            .map(|start| Pointer(start.to_owned()))
    }

    /// Reads a pointer as users write it: `/a/0` or `a/0`.
    pub fn parse(text: &str) -> Pointer {
        match text.is_empty() || text.starts_with('/') {
            true => Pointer(text.to_owned()),
            false => Pointer(format!("/{text}")),
        }
    }

    /// Returns the pointer to the containing value; `None` for the root.
    pub fn parent(&self) -> Option<Pointer> {
        self.0.rfind('/').map(|at| Pointer(self.0[..at].to_owned()))
    }
}

/// Sorts pointers token by token, with list indices in numeric order: `/messages/2` is before
/// `/messages/10`.
impl Ord for Pointer {
    fn cmp(&self, other: &Pointer) -> Ordering {
        let (mine, others) = (
            self.0.split('/').map(sort_key),
            other.0.split('/').map(sort_key),
        );
        mine.cmp(others)
    }
}

impl PartialOrd for Pointer {
    fn partial_cmp(&self, other: &Pointer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the sort key of a token. Numbers come first, in numeric order.
fn sort_key(token: &str) -> (bool, usize, &str) {
    let is_number = token.bytes().all(|byte| byte.is_ascii_digit()) && !token.is_empty();
    match is_number && (token == "0" || !token.starts_with('0')) {
        true => (false, token.len(), token),
        false => (true, 0, token),
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "(the whole body)"
        } else {
            &self.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_sorted_by_their_number() {
        let mut pointers =
            ["/m/10", "/m/2/a", "/m", "/m/2", "", "/m/x", "/m/02", "/a/1"].map(Pointer::parse);
        pointers.sort();
        let sorted = ["", "/a/1", "/m", "/m/2", "/m/2/a", "/m/10", "/m/02", "/m/x"];
        assert_eq!(pointers, sorted.map(Pointer::parse));
    }

    #[test]
    fn tokens_are_escaped_and_back() {
        let pointer = Pointer::root().member("a/b~c").element(3);
        assert_eq!(pointer.as_str(), "/a~1b~0c/3");
        assert_eq!(pointer.tokens().collect::<Vec<_>>(), ["a/b~c", "3"]);
        assert_eq!(pointer.parent(), Some(Pointer::root().member("a/b~c")));
    }
}
