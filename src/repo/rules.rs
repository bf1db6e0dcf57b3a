//! The rules of reading a repository.

crate::diag::rules! {
    UNREADABLE = Error "repo/unreadable", "a file cannot be read",
        "A file of the repository is there but cannot be read: permissions, a broken link, a folder with a file's \
         name, or a link that leads out of the repository.\n\nRename the folder, fix the permissions, or copy the \
         file into the repository: a repository must be whole in a fresh clone.";
    NOT_TEXT = Error "repo/not-text", "a file is not UTF-8 text",
        "Every source file is UTF-8, with or without a byte-order mark, with `\\n` or `\\r\\n` line endings. A NUL \
         byte or an invalid sequence means that the file was saved in another encoding or is no text at all.\n\n\
         Convert it: `iconv -f WINDOWS-1252 -t UTF-8`.";
    TOO_LARGE = Error "repo/too-large", "a source file is larger than 64 MiB",
        "Positions are kept in 32 bits, and no profile, partial or context is that large on purpose.";
    EMPTY = Error "repo/empty", "there is no profile to compile",
        "A repository needs at least one profile: `agents/*.toml`, or `*.toml` in one flat folder.\n\n\
         `reqc init` writes a small repository to start from; `-C DIR` names another folder; `--bundled` compiles the \
         agents that come with reqc.";
    DUPLICATE_NAME = Error "repo/duplicate-name", "two files of one layer define the same name",
        "Names of profiles, partials, contexts and provider instances are unique in a layer. Which file would win \
         would depend on chance, so neither does. Rename one of them.";
    BUNDLED_NAME = Error "repo/bundled-name", "a bundled name is taken",
        "A profile, partial or context of the repository has the name of a bundled one. This is refused so that an \
         upgrade of reqc can never change what a name means.\n\nGive yours another name; a profile can say `extends` \
         with the bundled name to start from it. (Provider instances are the exception: a repository's own replaces \
         the bundled one of the same name.)";
    TOML_SYNTAX = Error "toml/syntax", "a file is not valid TOML",
        "The file does not follow the TOML grammar, so nothing in it is used. Common causes: a string without its \
         closing quote, a key twice, a `[table]` twice, a line break inside `\"…\"` (use `\"\"\"…\"\"\"`).";
    UNKNOWN_KEY = Warning "key/unknown", "a key is not known here",
        "A key that nothing reads is most often misspelt: the value has no effect. Fix the spelling or remove the key.\n\n\
         In `[body]` any key is allowed: the body goes to the provider as it is.";
    WRONG_TYPE = Error "key/wrong-type", "a value has the wrong type",
        "The key expects another type of value, for instance `enable_tools = true`, not `\"true\"`.";
    INVALID_VALUE = Error "key/invalid-value", "a value is not one of those allowed",
        "The value has the right type, but it is not among the ones that mean something here.";
    MISSING_KEY = Error "key/missing", "a required key is missing",
        "A profile needs a `name`; a concrete agent also needs `provider_instance`, `endpoint` and `[body]`, its own or \
         inherited. A provider instance needs `name`, `client_api` and `url`.";
    NEWER_SCHEMA = Error "key/newer-schema", "the file is written for a newer reqc",
        "`schema_version` is larger than this binary knows. Upgrade reqc: guessing what the file means would be worse \
         than stopping.";
    LITERAL_SECRET = Error "provider/literal-key", "a key stands in the file itself",
        "`api_key_ref` *refers* to a key; the key itself must not be committed.\n\nWrite `env:NAME`, `file:PATH`, \
         `keyring:SERVICE/USER`, or the plain name of an entry of the keyring service `reqc`. If a real key was \
         committed, revoke it.";
    INSTANCE_EXTENDS = Error "provider/extends", "a provider instance extends nothing usable",
        "`extends` of a provider instance names another instance; it must exist and must not lead back to itself.";
    UNUSED_ALLOW = Warning "allow/unused", "an [[allow]] entry silences nothing",
        "The finding that the entry was written for is gone, or the entry has expired. Remove it, so that it cannot \
         hide something new.";
}
