//! Recognises text that is probably a secret, by its name, form, or position.
//!
//! The same functions are used for headers, URLs, references, and text. Input: a name or a string.
//! Output: `true` for a secret, or the secret's position, but never the secret itself. How certain
//! the result must be depends on the context: where a reference is expected, the beginning of a key
//! is enough; in prose, which may describe keys, a complete key is required.

use std::borrow::Cow;
use std::ops::Range;

/// The form of a provider's keys.
struct Form {
    /// The text that each key begins with.
    start: &'static str,
    /// The minimum number of characters after this text.
    least: usize,
    /// Returns `true` for the characters that may follow.
    alphabet: fn(u8) -> bool,
    /// `true` if nothing but a key begins with this text.
    is_unmistakable: bool,
}

/// The forms of known keys. Sources: the providers' pages where available; for GitHub
/// <https://github.blog/engineering/behind-githubs-new-authentication-token-formats/>, GitLab
/// <https://docs.gitlab.com/security/tokens/#token-prefixes>, Slack
/// <https://docs.slack.dev/authentication/tokens>, AWS
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>, npm
/// <https://docs.npmjs.com/about-access-tokens>, Hugging Face
/// <https://huggingface.co/docs/hub/security-tokens>; for the others, the rules of
/// <https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml>.
const FORMS: [Form; 54] = [
    // OpenAI, Anthropic (`sk-ant-`), OpenRouter (`sk-or-`), DeepSeek, and many providers with
    // compatible APIs.
    sure("sk-", 8),
    sure("pk-", 8),
    // Stripe, ElevenLabs.
    sure("sk_", 8),
    sure("rk_live_", 8),
    // Groq, xAI, Perplexity, NVIDIA, Replicate, Hugging Face.
    sure("gsk_", 8),
    sure("xai-", 8),
    sure("pplx-", 8),
    sure("nvapi-", 8),
    sure("r8_", 12),
    sure("hf_", 12),
    // Cerebras, Together, Jina, Databricks.
    unsure("csk-", 16, is_word),
    unsure("tgp_v1_", 16, is_word),
    unsure("jina_", 24, is_word),
    unsure("dapi", 32, is_hexadecimal),
    // Fireworks.
    unsure("fw_", 20, is_word),
    // Google: Cloud API keys, and OAuth tokens.
    sure("AIza", 8),
    unsure("AQ.", 24, is_word),
    unsure("ya29.", 16, is_word),
    unsure("GOCSPX-", 16, is_word),
    // Amazon: access key IDs, and Bedrock keys.
    unsure("AKIA", 16, is_upper),
    unsure("ASIA", 16, is_upper),
    unsure("ABSK", 32, is_word),
    unsure("bedrock-api-key-", 8, is_word),
    // GitHub.
    sure("ghp_", 8),
    sure("gho_", 8),
    sure("ghu_", 8),
    sure("ghs_", 8),
    sure("ghr_", 8),
    sure("github_pat_", 8),
    // GitLab.
    sure("glpat-", 8),
    sure("gldt-", 8),
    sure("glrt-", 8),
    sure("glcbt-", 8),
    sure("glptt-", 8),
    sure("glsoat-", 8),
    sure("glft-", 8),
    sure("glimt-", 8),
    sure("glagent-", 8),
    sure("gloas-", 8),
    // Slack.
    sure("xoxb-", 8),
    sure("xoxp-", 8),
    sure("xoxa-", 8),
    sure("xoxr-", 8),
    sure("xoxs-", 8),
    sure("xoxe-", 8),
    sure("xoxe.xox", 8),
    sure("xapp-", 8),
    // Package registries, and services used in builds.
    unsure("npm_", 36, is_word),
    unsure("pypi-", 16, is_word),
    unsure("dop_v1_", 32, is_hexadecimal),
    unsure("SG.", 20, is_word),
    unsure("shpat_", 32, is_hexadecimal),
    unsure("hvs.", 16, is_word),
    unsure("AGE-SECRET-KEY-1", 16, is_upper),
];

const fn sure(start: &'static str, least: usize) -> Form {
    Form {
        start,
        least,
        alphabet: is_word,
        is_unmistakable: true,
    }
}

const fn unsure(start: &'static str, least: usize, alphabet: fn(u8) -> bool) -> Form {
    Form {
        start,
        least,
        alphabet,
        is_unmistakable: false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_hexadecimal(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

impl Form {
    /// Returns the number of key characters after the prefix; `None` if the word does not begin
    /// with the prefix.
    fn length(&self, word: &str) -> Option<usize> {
        let rest = word.as_bytes().strip_prefix(self.start.as_bytes())?;
        Some(
            rest.iter()
                .take_while(|byte| (self.alphabet)(**byte))
                .count(),
        )
    }

    fn begins(&self, word: &str) -> bool {
        self.length(word)
            .is_some_and(|length| self.is_unmistakable || length >= self.least)
    }

    fn is_key(&self, word: &str) -> bool {
        self.length(word).is_some_and(|length| length >= self.least)
    }

    /// Returns `true` if a word is certainly a key, because it is long and contains digits, unlike
    /// examples and names.
    fn is_whole_key(&self, word: &str) -> bool {
        let Some(length) = self.length(word) else {
            return false;
        };
        let rest = &word.as_bytes()[self.start.len()..];
        length >= self.least.max(16)
            && rest.iter().filter(|byte| byte.is_ascii_digit()).count()
                > usize::from(self.is_unmistakable)
            && rest.iter().any(u8::is_ascii_alphabetic)
    }

    /// Returns `true` if a random key begins at an offset in a word, after lower-case letters.
    fn is_key_behind_letters(&self, at: usize, word: &str) -> bool {
        is_behind_letters(at, word)
            && self.is_whole_key(&word[at..])
            && is_random(&word[at + self.start.len()..], 16, 6)
    }
}

/// Returns `true` if a value is a key, with or without an authentication scheme (`Bearer …`). Used
/// where a value need not be a secret.
pub(crate) fn is_secret_value(value: &str) -> bool {
    let mut words = value.split(|c: char| c.is_whitespace() || ",;\"'".contains(c));
    is_login(value)
        || is_private_key(value)
        || words.any(|word| is_key(word) || words_of_pair(word).any(is_key))
}

/// Returns `true` if a part of a path or host is a key. Only known forms of keys are recognised,
/// because account identifiers in paths and hosts can be equally long and random.
pub(crate) fn is_key_in_path(part: &str) -> bool {
    is_token(part)
        || FORMS
            .iter()
            .any(|form| form.is_key(part) && part.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Returns `true` if a string is or contains a key where a reference is expected. Anything that
/// begins like a key, or is unlikely to be a name, is treated as a key.
pub(crate) fn is_key_for_reference(text: &str) -> bool {
    is_login(text)
        || is_private_key(text)
        || is_uuid(text)
        || text
            .split(|c: char| c.is_whitespace() || "\"':/=${}".contains(c))
            .any(|part| {
                is_token(part)
                    || is_random(part, 16, 3)
                    || FORMS.iter().any(|form| form.begins(part))
            })
}

/// Returns the positions of text that is certainly a key.
pub(crate) fn keys_in_text(text: &str) -> Vec<Range<usize>> {
    let words = long_words(text.as_bytes()).into_iter();
    words
        .filter_map(|word| key_in_word(text, word))
        .chain(private_keys(text))
        .collect()
}

/// Replaces each byte of keys and of logins in URLs with `*`. Lines and offsets do not change.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let mut places = keys_in_text(text);
    places.extend(logins(text));
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut bytes = text.as_bytes().to_vec();
    let hidden = places.into_iter().flatten();
    hidden
        .filter(|at| text.as_bytes()[*at] != b'\n')
        .for_each(|at| bytes[at] = b'*');
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the position of the key in a word. The key may begin at the start of the word, after an
/// escape of JSON or TOML (`\nsk-…`), after a separator (`body.sk-…`, `team_ghp_…`), or, if it is
/// too random for a name, after letters (`usersk-…`).
fn key_in_word(text: &str, word: Range<usize>) -> Option<Range<usize>> {
    let bytes = &text.as_bytes()[word.clone()];
    let escape: &[usize] = match (text[..word.start].ends_with('\\'), bytes[0]) {
        (false, _) => &[],
        (true, b'u') => &[1, 5],
        (true, b'U') => &[1, 9],
        (true, _) => &[1],
    };
    let signs = memchr::memchr3_iter(b'.', b'_', b'-', bytes).map(|sign| sign + 1);
    let starts = std::iter::once(0)
        .chain(escape.iter().copied())
        .chain(signs)
        .map(|at| word.start + at);
    starts
        .take(MOST_PARTS)
        .filter(|at| at + SHORTEST <= word.end)
        .find(|at| is_whole_key(&text[*at..word.end]))
        .or_else(|| key_behind_letters(&text[word.clone()]).map(|at| word.start + at))
        .map(|at| at..word.end)
}

/// Returns the offset of a key that follows lower-case letters directly (`tokensk-…`), if the text
/// after its prefix is too random for a name. Web tokens are found after any text. In long words,
/// only web tokens are searched for, because encoded data contains other prefixes by chance.
fn key_behind_letters(word: &str) -> Option<usize> {
    if word.len() > LONGEST_GLUED {
        return token_behind_letters(word);
    }
    let mut signs = memchr::memchr2_iter(b'_', b'-', word.as_bytes())
        .map(|sign| sign + 1)
        .take(MOST_PARTS);
    let found = signs
        .find_map(|sign| {
            let forms = FORMS
                .iter()
                .filter(|form| form.is_unmistakable && word[..sign].ends_with(form.start));
            forms
                .map(|form| (sign - form.start.len(), form))
                .find(|(at, form)| form.is_key_behind_letters(*at, word))
                .map(|(at, _)| at)
        })
        .or_else(|| {
            let google = FORMS.iter().find(|form| form.start == "AIza")?;
            memchr::memmem::find_iter(word.as_bytes(), google.start)
                .take(MOST_PARTS)
                .find(|at| google.is_key_behind_letters(*at, word))
        });
    found.or_else(|| token_behind_letters(word))
}

fn token_behind_letters(word: &str) -> Option<usize> {
    memchr::memmem::find_iter(word.as_bytes(), "eyJ")
        .take(MOST_PARTS)
        .find(|at| is_token(&word[*at..]))
}

fn is_behind_letters(at: usize, word: &str) -> bool {
    let run = word[..at]
        .rsplit(['-', '_', '.'])
        .next()
        .unwrap_or_default();
    run.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The maximum length of a word that is searched for a key after letters, in bytes.
const LONGEST_GLUED: usize = 256;

/// The maximum number of word parts that are examined.
const MOST_PARTS: usize = 40;

fn is_whole_key(word: &str) -> bool {
    let word = word.trim_start_matches(['-', '_', '.']);
    is_token(word) || FORMS.iter().any(|form| form.is_whole_key(word))
}

/// Returns the positions of credentials in URLs: `user:password` in `https://user:password@host`.
fn logins(text: &str) -> Vec<Range<usize>> {
    memchr::memmem::find_iter(text.as_bytes(), "://")
        .filter_map(|scheme| {
            let start = scheme + "://".len();
            let rest = &text.as_bytes()[start..];
            let end = rest
                .iter()
                .position(|byte| !byte.is_ascii_graphic() || b"/?#@\"\\<>`".contains(byte))?;
            let is_login = rest[end] == b'@' && rest[..end].contains(&b':');
            is_login.then_some(start..start + end)
        })
        .collect()
}

/// The minimum length of a word that is certainly a key, in bytes.
const SHORTEST: usize = 19;

/// Returns the positions of words that are long enough to be keys. Works on bytes for speed,
/// because it is applied to every byte of a repository, and keys contain only ASCII.
fn long_words(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut start = 0;
    for (at, byte) in bytes.iter().chain(std::iter::once(&b' ')).enumerate() {
        if !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_' | b'.') {
            if at - start >= SHORTEST {
                places.push(start..at);
            }
            start = at + 1;
        }
    }
    places
}

/// Returns the positions to hide in text that cannot be parsed: everything that looks like a key,
/// or like a login in a URL. Quotes are ignored.
pub(crate) fn places_to_hide(text: &str) -> Vec<Range<usize>> {
    // A long word that contains dots is probably a host.
    text.split(|c: char| c.is_whitespace() || "\"'=,[]{}#".contains(c))
        .filter_map(|word| {
            let login = word
                .rsplit_once('@')
                .map(|(login, _)| login.split_once("://").map_or(login, |(_, login)| login));
            Some(word)
                .filter(|word| begins_key(word) || is_random(word, 16, 2) && !word.contains('.'))
                .or(login)
                // Examine each part of a URL.
                .or_else(|| {
                    word.split([':', '/', '?', '&', ';'])
                        .find(|part| begins_key(part))
                })
                .map(|part| place(text, part))
        })
        .chain(private_keys(text))
        .collect()
}

fn begins_key(part: &str) -> bool {
    FORMS.iter().any(|form| form.begins(part)) || is_token(part)
}

/// Returns `true` if a recorder replaced a value and says so, as in `call_REDACTED_1`.
pub(crate) fn is_redacted(value: &str) -> bool {
    value.to_ascii_lowercase().contains("redacted")
}

/// Returns `true` if a header, parameter, or field with this name contains a secret, in any
/// spelling: `PRIVATE-TOKEN`, `x_goog_api_key`, `clientSecret`.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let words = words_of(name);
    let is_about = words
        .last()
        .is_some_and(|word| ABOUT.contains(&word.as_str()));
    !is_about && (0..words.len()).any(|at| is_secret_word(&words, at))
}

/// Words that occur in the names of secrets.
const SECRETS: [&str; 22] = [
    "token",
    "jwt",
    "bearer",
    "auth",
    "authorization",
    "authentication",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "cookie",
    "sig",
    "signature",
    "pat",
    "apikey",
    "apikeys",
    "accesskey",
    "authkey",
];

/// The endings of secret names that are written as a single word: `openaiapikey`, `accesstoken`.
const ENDINGS: [&str; 13] = [
    "apikey",
    "accesskey",
    "secretkey",
    "authkey",
    "privatekey",
    "subscriptionkey",
    "accountkey",
    "masterkey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
];

/// Words that indicate a property of a secret rather than the secret itself: its type, its number,
/// or its source.
const ABOUT: [&str; 23] = [
    "type",
    "kind",
    "method",
    "mode",
    "scheme",
    "url",
    "uri",
    "endpoint",
    "version",
    "count",
    "limit",
    "name",
    "format",
    "algorithm",
    "length",
    "size",
    "ttl",
    "expires",
    "expiry",
    "usage",
    "budget",
    "provider",
    "required",
];

/// Words before `token` or `key` which show that the name refers to a piece of text or a table's
/// key rather than a secret.
const HARMLESS_TOKENS: [&str; 8] = ["max", "min", "stop", "end", "start", "eos", "bos", "pad"];
const HARMLESS_KEYS: [&str; 13] = [
    "idempotency",
    "cache",
    "partition",
    "sort",
    "routing",
    "primary",
    "public",
    "shard",
    "trace",
    "correlation",
    "request",
    "foreign",
    "affinity",
];

fn is_secret_word(words: &[String], at: usize) -> bool {
    let before = at
        .checked_sub(1)
        .map_or("", |before| words[before].as_str());
    match words[at].as_str() {
        "token" => !HARMLESS_TOKENS.contains(&before),
        // A key may be a credential, or may identify an entry. The preceding word decides. If it is
        // inconclusive, the name must end with `key`.
        "key" => {
            let is_credential = [
                "api",
                "access",
                "secret",
                "private",
                "auth",
                "subscription",
                "account",
                "master",
            ];
            is_credential.contains(&before) && words.get(at + 1).is_none_or(|next| next != "id")
                || at + 1 == words.len() && !HARMLESS_KEYS.contains(&before)
        }
        word => SECRETS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending)),
    }
}

/// Splits a name into lower-case words, at separators and where a capital follows a lower-case
/// letter.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (before.is_ascii_lowercase() && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Splits a value of the form `name=value` into its two parts.
fn words_of_pair(word: &str) -> impl Iterator<Item = &str> {
    word.split(['=', ':', '&'])
        .filter(move |part| part.len() < word.len())
}

fn is_key(word: &str) -> bool {
    is_token(word) || is_random(word, 24, 6) || FORMS.iter().any(|form| form.is_key(word))
}

/// Returns `true` for a JSON Web Token, which consists of two JSON values in base64url, and a
/// signature (RFC 7519; `eyJ` is the base64url of `{"`).
fn is_token(word: &str) -> bool {
    let mut parts = word.split('.');
    is_json(parts.next()) && is_json(parts.next()) && parts.next().is_some()
}

fn is_json(part: Option<&str>) -> bool {
    part.is_some_and(|part| part.starts_with("eyJ") && part.len() >= 8)
}

/// Returns `true` if a string contains at least `least` consecutive letters and digits that do not
/// form a word: either they change at least `changes` times between letters, digits, and capitals,
/// or they are at least 32 hexadecimal digits. Both letters and digits must occur.
fn is_random(word: &str, least: usize, changes: usize) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let turns = run
            .as_bytes()
            .windows(2)
            .filter(|pair| kind(pair[0]) != kind(pair[1]))
            .count();
        let is_hexadecimal = run.len() >= 32 && run.bytes().all(is_hexadecimal);
        run.len() >= least && has_both(run) && (turns >= changes || is_hexadecimal)
    })
}

fn has_both(run: &str) -> bool {
    run.bytes().any(|b| b.is_ascii_digit()) && run.bytes().any(|b| b.is_ascii_alphabetic())
}

fn kind(byte: u8) -> (bool, bool) {
    (byte.is_ascii_digit(), byte.is_ascii_uppercase())
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12])
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns `true` for an HTTP authentication scheme followed by credentials (RFC 9110, 11.4).
fn is_login(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let (Some(scheme), Some(login)) = (words.next(), words.next()) else {
        return false;
    };
    let is_mixed = login.len() >= 8
        && login
            .bytes()
            .any(|byte| byte.is_ascii_digit() || byte == b'=');
    match scheme.trim_end_matches(':').to_ascii_lowercase().as_str() {
        "bearer" => words.next().is_none(),
        "basic" | "token" | "apikey" | "api-key" | "digest" | "negotiate" | "private-token" => {
            is_mixed
        }
        "aws4-hmac-sha256" => true,
        _ => false,
    }
}

/// Returns `true` for the text form of a private key (RFC 7468).
fn is_private_key(text: &str) -> bool {
    text.contains("-----BEGIN ") && text.contains("PRIVATE KEY")
}

/// Returns the positions of private keys, each from its first line to its end.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    for start in memchr::memmem::find_iter(text.as_bytes(), "-----BEGIN ") {
        let end = text[start..]
            .find("-----END ")
            .map_or(text.len(), |end| start + end);
        let inner = &text[start..end];
        let is_long = inner.split_whitespace().any(|line| line.len() >= 40);
        // If its line breaks are escaped, the key is a single word.
        if inner
            .lines()
            .next()
            .is_some_and(|line| line.contains("PRIVATE KEY"))
            && is_long
        {
            places.push(start..end);
        }
    }
    places
}

fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_behind_letters_are_masked() {
        let random = "a1B2c3D4e5F6g7H8i9J0k1L2";
        for key in [
            format!("sk-{random}"),
            format!("sk-ant-api03-{random}"),
            format!("ghp_{random}"),
            format!("AIza{random}"),
            format!("eyJhbGciOiJI.eyJzdWIiOiJ4.{random}"),
        ] {
            let text = format!("Home is /home/user{key} here");
            assert_eq!(
                masked(&text),
                format!("Home is /home/user{} here", "*".repeat(key.len()))
            );
        }
        for plain in [
            "task-list-of-2026-and-2027-in-order",
            "desk-assembly2of12parts3",
            "risk-model-gpt5mini20260714",
        ] {
            assert_eq!(masked(plain), plain);
        }
        // This is encoded data, not a key.
        let data = format!("gAAAAABpfFU202AuzUD3Xsk-{random}");
        assert_eq!(masked(&data), data);
    }

    /// Returns a key in each provider's form. None of them is real.
    fn keys() -> Vec<String> {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        let starts = [
            "sk-",
            "sk-ant-api03-",
            "sk-proj-",
            "sk-or-v1-",
            "sk_live_",
            "gsk_",
            "xai-",
            "pplx-",
            "nvapi-",
            "r8_",
            "hf_",
            "AIza",
            "AQ.",
            "fw_",
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "gldt-",
            "glrt-",
            "xoxb-",
            "xoxp-",
            "xapp-",
            "ya29.",
        ];
        let mut keys: Vec<String> = starts
            .iter()
            .map(|start| format!("{start}{body}"))
            .collect();
        let others = [
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
            "dapi0123456789abcdef0123456789abcdef",
        ];
        keys.extend(others.map(str::to_owned));
        keys
    }

    #[test]
    fn keys_are_known_wherever_they_stand() {
        for key in keys() {
            assert!(
                is_secret_value(&key) && is_secret_value(&format!("a={key}")),
                "{key}"
            );
            assert!(is_key_in_path(&key), "{key}");
            for reference in [
                key.clone(),
                format!("env:{key}"),
                format!("keyring:reqc/{key}"),
                format!("foo:{key}"),
            ] {
                assert!(is_key_for_reference(&reference), "{reference}");
            }
            let text = format!("Use \"{key}\" here, and\nKEY={key}.");
            assert_eq!(keys_in_text(&text).len(), 2, "{key}");
            assert!(!places_to_hide(&text).is_empty(), "{key}");
        }
        for value in [
            "Bearer x",
            "bearer  abc",
            "Basic dXNlcjpwdw==",
            "token 0123456789ab",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert!(is_secret_value(value), "{value}");
        }
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn1ygWyF8PbnGyabcdef0123\n-----END RSA PRIVATE KEY-----";
        assert!(is_secret_value(pem) && keys_in_text(pem).len() == 1);
    }

    #[test]
    fn keys_are_masked_in_any_text() {
        for key in keys() {
            let stars = "*".repeat(key.len());
            for (before, after) in [
                ("`", "`"),
                ("é ", "…"),
                ("\\n", "\\n"),
                ("\\u00e9", "\""),
                ("/", "/x"),
                ("a=", "&"),
            ] {
                let shown = masked(&format!("{before}{key}{after}")).into_owned();
                assert!(!shown.contains(&key[4..]), "{shown}");
                assert!(shown.contains(&stars) && shown.ends_with(after), "{shown}");
                assert_eq!(masked(&shown), shown);
            }
        }
        let pem = "a\n-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn1ygWyF8PbnGyabcdef0123\n";
        assert!(
            masked(pem)
                .lines()
                .skip(1)
                .all(|line| line.bytes().all(|byte| byte == b'*'))
        );
        assert_eq!(
            masked("at https://a:b@c.example/d"),
            "at https://***@c.example/d"
        );
        for text in [
            "https://c.example:80/@a",
            "https://c.example",
            "a://b@c",
            "C:\\users\\sketch-of-a-task-force",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn ordinary_values_are_none() {
        for value in [
            "reqc",
            "claude-sonnet-4-5-20250929",
            "gpt-4o-mini-2024-07-18",
            "meta-llama/Llama-3.3-70B-Instruct-Turbo",
            "accounts/fireworks/models/qwen3-coder-480b-a35b-instruct",
            "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14",
            "2024-12-01-preview",
            "2025-11-22T18:26:52Z",
            "https://team.example/agents?page=2",
            "123e4567-e89b-12d3-a456-426614174000",
            "Basic usage of agents",
            "Token economy",
            "task-force-2024",
            "hf_transfer",
            "org-abc123",
            "application/vnd.example.v2+json",
        ] {
            assert!(!is_secret_value(value) && !is_key_in_path(value), "{value}");
        }
        for reference in [
            "env:OPENAI_API_KEY",
            "file:~/.keys/openai-2024",
            "keyring:team/openai",
            "openai-production-2024",
        ] {
            assert!(!is_key_for_reference(reference), "{reference}");
        }
        for text in [
            "Keys begin with sk-… or sk-ant-.",
            "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
            "never print glpat- tokens",
            "ghp_YOUR_TOKEN_GOES_HERE",
        ] {
            assert!(keys_in_text(text).is_empty(), "{text}");
        }
        assert!(
            !is_key_in_path("023e105f4ecef8ad9ca31a8372d0c353"),
            "the number of an account"
        );
    }

    #[test]
    fn names_tell_secrets_by_their_words() {
        for name in [
            "PRIVATE-TOKEN",
            "X-JWT",
            "Authorization",
            "x-goog-api-key",
            "openai_api_key",
            "x-gitlab-token",
            "X-Vault-Token",
            "client_secret",
            "clientSecret",
            "x-secret-id",
            "password",
            "DB_PASSWORD",
            "cookie",
            "Set-Cookie",
            "x_api_key",
            "Api-Key",
            "X-Amz-Security-Token",
            "X-Amz-Signature",
            "Ocp-Apim-Subscription-Key",
            "proxy-authorization",
            "x-auth",
            "key",
            "sig",
            "accesstoken",
            "OPENAIAPIKEY",
            "xGoogApiKey",
            "credentials",
            "x-functions-key",
            "pwd",
            "access_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "x-title",
            "HTTP-Referer",
            "anthropic-beta",
            "anthropic-version",
            "x-key-points",
            "max-tokens",
            "x-max-token",
            "token-count",
            "token_limit",
            "x-auth-type",
            "Idempotency-Key",
            "x-cache-key",
            "prompt_cache_key",
            "alt",
            "api-version",
            "author",
            "x-api-key-id",
            "monkey",
            "x-session-affinity",
            "openai-organization",
            "user-agent",
            "x-secretary",
            "design",
            "keyboard",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
