//! The rules for reading a repository.

crate::diag::rules! {
    UNREADABLE = Error "repo/unreadable", "a file cannot be read",
        "A file or folder in the repository exists but cannot be read: missing permissions, a broken link, a folder named like a file, a \
         pipe or a device, a link that points outside the repository or to a hidden file, or a folder with more than 200,000 entries, \
         1,000 links to folders or 64 levels below it. The content of a folder that cannot be listed is unknown, so this is an error even \
         if nothing uses the folder.\n\n\
         Rename the folder, fix the permissions, or copy the file into the repository: a fresh clone must be complete.";
    NOT_TEXT = Error "repo/not-text", "a file is not UTF-8 text",
        "Every source file is UTF-8, with or without a byte-order mark, with `\\n` or `\\r\\n` line endings. A NUL \
         byte or an invalid sequence means that the file was saved in a different encoding or is not text at all.\n\n\
         Convert it: `iconv -f WINDOWS-1252 -t UTF-8`.";
    TOO_LARGE = Error "repo/too-large", "a source file is larger than 64 MiB, or all together are larger than 128 MiB",
        "Positions are stored in 32 bits, and no profile, partial or context is that large on purpose. reqc checks the size \
         before it reads a file. A repository's source files may total at most 128 MiB.\n\n\
         Usually a data file is in the wrong folder: every file in `agents/`, `partials/`, `contexts/` and `providers/` is \
         read.";
    NOT_READ = Error "repo/not-read", "a file contains a source, but is not read",
        "The file contains a profile, a provider instance, a context or a schema, but it is in a folder that is not read, or its \
         name is not that of a source. Its definitions are missing from the run, and no other finding reports that.\n\n\
         * wrong: `helper.toml` at the root of a repository with a folder `agents/`\n\
         * right: `agents/helper.toml`\n\
         * wrong: `agents/helper.TOML`, `agents/helper.toml.bak`\n\
         * right: `agents/helper.toml`\n\n\
         Profiles are read from `agents/` and below, or from the root if there is no such folder; contexts from `contexts/`, \
         provider instances from `providers/`, schemas from `schemas/wire/`. If the file is there for another reason, move it \
         elsewhere.";
    UNUSUAL_NAME = Warning "repo/unusual-name", "a file name resembles a source file's, and the file is not read",
        "Names of source files are case-sensitive: `.TOML` is not `.toml`. A name that begins with a dot is hidden. A file \
         whose name resembles that of a source file was usually meant to be one.\n\n\
         * wrong: `partials/turn.jinja2`, `Reqc.toml`, `agents/.new/helper.toml`\n\
         * right: `partials/turn.jinja`, `reqc.toml`, `agents/new/helper.toml`";
    EMPTY = Error "repo/empty", "there is no profile to compile",
        "A repository needs at least one profile: `agents/*.toml`, or `*.toml` in one flat folder.\n\n\
         `reqc init` creates a small repository to start from; `-C DIR` selects another folder; `--bundled` compiles \
         the agents that come with reqc.";
    DUPLICATE_NAME = Error "repo/duplicate-name", "two files in one layer define the same name",
        "Names of profiles, partials, contexts and provider instances are unique in a layer. Otherwise, the choice between them would be \
         arbitrary, so neither is used. Names of contexts must differ in more than case: golden files are named after them, and some file \
         systems ignore case.\n\n\
         Rename one of them. The finding points to one and names the other.";
    BUNDLED_NAME = Error "repo/bundled-name", "a name is already taken by a bundled file",
        "A profile, partial or context in the repository has the same name as a bundled one. This is an error, so that an upgrade of reqc \
         can never change what a name means.\n\n\
         Give yours a different name; to start from the bundled profile, name it in `extends`. In a collection with `dialect = \"inja\"`, \
         a profile may have such a name, which is only a warning: within the collection, the name then means the collection's profile. \
         (Provider instances are the exception: a repository's own instance replaces the bundled one of the same name.)";
    TOML_SYNTAX = Error "toml/syntax", "a file is not valid TOML",
        "The file does not follow the TOML grammar, so nothing in it is used.\n\n\
         Common causes: a string without its closing quote, a repeated key, a repeated `[table]`, a line break \
         inside `\"…\"`. For text of several lines, use three quotes:\n\n\
         * wrong: `system_prompt = \"first line` and the rest on the next line\n\
         * right: `system_prompt = \"\"\"`, the lines, and `\"\"\"` again\n\n\
         A prompt full of backslashes or quotes is easiest in `'''…'''`, where nothing is escaped.";
    UNKNOWN_KEY = Error[lowerable] "key/unknown", "an unknown key",
        "A key that nothing reads has no effect, and the setting that it was meant to change silently keeps its old \
         value.\n\n\
         * wrong: `retries = 3` in a profile\n\
         * right: `# retries: 3`, or your own key where your own tools look for it\n\n\
         `[body]` accepts any key: the body goes to the provider as it is, and the schema of its wire format defines which \
         fields exist. A misspelled key is reported as `key/misspelt`, and a key that belongs in another table as \
         `key/misplaced`.\n\n\
         A repository that keeps its own keys next to those of `reqc` turns the rule off: `\"key/unknown\" = \"off\"` under `[rules]` in \
         `reqc.toml`.";
    MISSPELT_KEY = Error "key/misspelt", "a key is misspelled",
        "The key differs from a known one by a letter or two, or by its spelling (`providerInstance`). Its value would have no \
         effect.\n\n\
         * wrong: `enable_tool = true`\n\
         * right: `enable_tools = true`\n\n\
         The file is read as if the key were right, so that the mistake causes no other findings. A profile with a misspelled key is \
         not compiled, and neither are profiles that extend it.";
    MISPLACED_KEY = Error "key/misplaced", "a key is in the wrong table",
        "The key belongs in a different table of the file, so its value would have no effect here. Usually it is a field of the request \
         body that is above `[body]`, or a key of the profile that is below a `[…]` header: in TOML, everything below a header belongs to \
         its table.\n\n\
         * wrong: `temperature = 0.7` above `[body]`\n\
         * right: `temperature = 0.7` below `[body]`\n\
         * wrong: `golden_contexts = [\"plain-turn\"]`\n\
         * right: `contexts = [\"plain-turn\"]` under `[golden]`";
    WRONG_TYPE = Error "key/wrong-type", "a value has the wrong type",
        "The key expects a value of a different type, and a guess would hide the mistake.\n\n\
         * wrong: `enable_tools = \"true\"`\n\
         * right: `enable_tools = true`\n\n\
         A profile with such a mistake is not compiled, and neither are profiles that extend it.";
    INVALID_VALUE = Error "key/invalid-value", "a value is not allowed here",
        "The value has the right type, but it is not one of the allowed values. The help shows the closest one, or all of \
         them.\n\n\
         * wrong: `cache_ttl = \"60m\"`\n\
         * right: `cache_ttl = \"1h\"`\n\n\
         This code also reports globs that do not parse, are longer than 1,000 bytes or nest braces deeper than 8 levels, \
         lists that are too long, malformed dates, unusable URLs and endpoints, headers that belong to the connection \
         (`content-length`, `host`), and names without a single ASCII letter or digit.";
    MISSING_KEY = Error "key/missing", "a required key is missing",
        "A profile needs a `name`. A concrete agent also needs `provider_instance`, `endpoint` and `[body]`, \
         its own or inherited. A provider instance needs `name`, `client_api` and `url`. An `[[allow]]` entry \
         needs `code` and `reason`.\n\n\
         A profile that exists only to be extended needs just its name and `abstract = true`.";
    NEWER_SCHEMA = Error "key/newer-schema", "the file requires a newer version of reqc",
        "`schema_version` is higher than this version of reqc supports. Stopping is better than guessing what the file means.\n\n\
         Upgrade reqc. If the number is a mistake, remove the key: version 1 is the default.";
    OTHER_VERSION = Error "config/other-version", "the repository requires a different version of reqc",
        "`version` under `[reqc]` in `reqc.toml` sets which versions may compile the repository: bundled profiles, partials and \
         schemas come with the program, so a different version may produce different bodies.\n\n\
         * wrong: `version = \"=0.9.0\"`, compiled with a different version\n\
         * right: a requirement that the installed version meets, such as `version = \"0.9\"` for 0.9.0 and later releases of \
         0.9\n\n\
         Requirements use Cargo's syntax: `0.9`, `=0.9.1`, `>=0.9, <0.11`. To upgrade, change the line, and check what `reqc \
         compile --diff` shows against the golden files.";
    LITERAL_SECRET = Error "provider/literal-key", "the file itself contains a key",
        "`api_key_ref` *refers* to a key; the key itself must not be committed.\n\n\
         * wrong: `api_key_ref = \"sk-…\"`\n\
         * right: `api_key_ref = \"env:OPENAI_API_KEY\"`\n\n\
         The other forms are `file:PATH`, `keyring:SERVICE/USER`, and the plain name of an entry in the keyring service `reqc`. A \
         reference that looks like a key is rejected: it begins like keys of a known provider (`sk-`, `ghp_`, `glpat-`, `xoxb-`, …), is a \
         JSON Web Token, or consists of 16 or more mixed characters. The same applies to credentials in a `url` \
         (`https://USER:PASSWORD@HOST`), a key in the path or in a parameter of a `url` or an `endpoint` (`?key=…`), and a header whose \
         name (`PRIVATE-TOKEN`) or value (`Bearer …`) shows that it carries a key: request lines are printed and kept in golden \
         files.\n\n\
         Everywhere else in a file, such as in a prompt or a comment, only certain keys are reported: a known prefix followed by \
         16 or more characters, or a private key.\n\n\
         If a real key was committed, revoke it: it stays in the history.";
    INSTANCE_EXTENDS = Error "provider/extends", "a provider instance extends no usable instance",
        "`extends` in a provider instance names another instance, which must exist and must not extend this one, directly or \
         indirectly.\n\n\
         A chain can contain at most 32 instances.\n\n\
         An instance with the name of a bundled one replaces it, and therefore cannot extend it. Give it a different name, or write out \
         `client_api` and `url`.";
    REPEATED_ROSTER = Error "roster/repeated-name", "two rosters have the same name",
        "`reqc route` and other programs select a roster by its name, so only the first of the two would ever be \
         used.\n\n\
         Rename one of them, or merge their agents into one list, in the order in which they should be tried.";
    REPEATED_FAMILY = Error "models/repeated-name", "two model families have the same name",
        "An entry in a repository's file replaces the bundled one with the same name, so a name must identify one entry. With two in one \
         file, the choice between them would be arbitrary.\n\n\
         Rename one of them: if several families match a model, their facts are combined.";
    REPEATED_AGENT = Warning "roster/repeated-agent", "an agent is in a roster twice",
        "Only an agent's first entry in a roster has an effect. If its `match` does not accept a file, later entries of the same agent are \
         not tried.\n\n\
         Remove the later entry, or write the name of the agent that was intended.";
    REPEATED_TOOL = Error "tools/repeated-name", "two tools or two servers have the same name",
        "A model calls a tool by its name, and providers reject two tools with the same name. The names of a server's tools \
         begin with the server's name.\n\n\
         Rename one of them.";
    SERVER_CONNECTION = Error "tools/server-connection", "the connection to an MCP server is ambiguous",
        "A `[[server]]` in `tools.toml` is either a program that `reqc` starts (`command`) or a server at a URL (`url`), never both. \
         `env` and `working_directory` belong to `command`; `headers`, `api_key_ref` and `api_key_header` belong to `url`.\n\n\
         * wrong: `command = [\"npx\", \"mcp-remote\"]` and `url = \"https://host.example/mcp\"` in one entry\n\
         * right: `url = \"https://host.example/mcp\"`\n\
         * wrong: `headers = { x-team = \"a\" }` next to `command`\n\
         * right: `env = [\"TEAM\"]` next to `command`";
    NO_PROGRAM = Warning "tools/no-program", "the program of a tool or server is missing or not executable",
        "The tool is offered to the model, but every call fails: the model is told that the tool cannot be run. If a server \
         cannot be started, it has no tools, and nothing is sent.\n\n\
         A plain name is looked up in `PATH`; a name with a separator is a path, relative to the folder of `tools.toml`. `chmod \
         +x` makes a script executable. There is no shell: each argument is a separate element.\n\n\
         * wrong: `command = [\"git status\"]`\n\
         * right: `command = [\"git\", \"status\"]`";
    UNUSED_ALLOW = Warning "allow/unused", "an [[allow]] entry suppresses nothing",
        "The finding that the entry was written for no longer exists, or the entry has expired. Remove it, \
         so that it cannot hide something new.\n\n\
         Entries are checked only when the whole repository is compiled: never with `--agent` or \
         `--context`.";
}
