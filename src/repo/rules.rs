//! The rules for reading a repository.

crate::diag::rules! {
    UNREADABLE = Error "repo/unreadable", "a file cannot be read",
        "A file or folder of the repository is there but cannot be read: permissions, a broken link, a folder with a file's \
         name, a pipe or a device, a link that leads out of the repository or to a hidden file, or a folder with more than \
         200,000 entries, 1,000 links to folders or 64 levels below it. What is in a folder that cannot be listed is not known, so \
         this is an error also where nothing asks for it.\n\nRename the folder, fix the permissions, or copy the \
         file into the repository: a repository must be whole in a fresh clone.";
    NOT_TEXT = Error "repo/not-text", "a file is not UTF-8 text",
        "Every source file is UTF-8, with or without a byte-order mark, with `\\n` or `\\r\\n` line endings. A NUL \
         byte or an invalid sequence means that the file was saved in another encoding or is not text at all.\n\n\
         Convert it: `iconv -f WINDOWS-1252 -t UTF-8`.";
    TOO_LARGE = Error "repo/too-large", "a source file is larger than 64 MiB, or all are larger than 128 MiB",
        "Positions are kept in 32 bits, and no profile, partial or context is that large on purpose. The size is known before a \
         file is read. All source files of a repository may have 128 MiB together.\n\n\
         Most often a data file lies in the wrong folder: `agents/`, `partials/`, `contexts/` and `providers/` \
         are read whole.";
    NOT_READ = Error "repo/not-read", "a file holds a source, and is not read",
        "The file holds a profile, a provider instance, a context or a schema, but it lies where none is read, or has a name that \
         no source has. What it defines is missing from the run, and nothing else would say so.\n\n\
         * wrong: `helper.toml` at the root of a repository with a folder `agents/`\n\
         * right: `agents/helper.toml`\n\
         * wrong: `agents/helper.TOML`, `agents/helper.toml.bak`\n\
         * right: `agents/helper.toml`\n\n\
         Profiles are read from `agents/` and below, or from the root if there is no such folder; contexts from `contexts/`, \
         provider instances from `providers/`, schemas from `schemas/wire/`. A file that is there for another reason belongs \
         elsewhere.";
    UNUSUAL_NAME = Warning "repo/unusual-name", "a file is called almost like a source, and is not read",
        "Names of source files are compared letter by letter: `.TOML` is not `.toml`, and a name that begins with a dot is hidden. \
         A file that is called almost like a source was most often meant as one.\n\n\
         * wrong: `partials/turn.jinja2`, `Reqc.toml`, `agents/.new/helper.toml`\n\
         * right: `partials/turn.jinja`, `reqc.toml`, `agents/new/helper.toml`";
    EMPTY = Error "repo/empty", "there is no profile to compile",
        "A repository needs at least one profile: `agents/*.toml`, or `*.toml` in one flat folder.\n\n\
         `reqc init` writes a small repository to start from; `-C DIR` names another folder; `--bundled` compiles the \
         agents that come with reqc.";
    DUPLICATE_NAME = Error "repo/duplicate-name", "two files of one layer define the same name",
        "Names of profiles, partials, contexts and provider instances are unique in a layer. Which file would win \
         would depend on chance, so neither does. Names of contexts must differ in more than case: golden files are named after \
         them, and some file systems ignore it.\n\n\
         Rename one of them. The finding stands at one and shows the other.";
    BUNDLED_NAME = Error "repo/bundled-name", "a bundled name is taken",
        "A profile, partial or context of the repository has the name of a bundled one. This is refused so that an \
         upgrade of reqc can never change what a name means.\n\nGive yours another name; a profile can say `extends` \
         with the bundled name to start from it. In a collection with `dialect = \"inja\"` a profile may have such a name, which is a \
         warning: for the collection's own profiles it means their own. (Provider instances are the exception: a repository's own replaces \
         the bundled one of the same name.)";
    TOML_SYNTAX = Error "toml/syntax", "a file is not valid TOML",
        "The file does not follow the TOML grammar, so nothing in it is used.\n\n\
         Common causes: a string without its closing quote, a key twice, a `[table]` twice, a line break inside \
         `\"…\"`. For text of several lines write three quotes:\n\n\
         * wrong: `system_prompt = \"first line` and the rest on the next line\n\
         * right: `system_prompt = \"\"\"`, the lines, and `\"\"\"` again\n\n\
         A prompt full of backslashes or quotes is easiest in `'''…'''`, where nothing is escaped.";
    UNKNOWN_KEY = Error[lowerable] "key/unknown", "a key is not known here",
        "A key that nothing reads has no effect, and nobody notices: what it was to set is not set.\n\n\
         * wrong: `retries = 3` in a profile\n\
         * right: `# retries: 3`, or a key of your own where your own tools look for it\n\n\
         In `[body]` any key is allowed here: the body goes to the provider as it is, and the schema of its wire format says \
         which fields there are. A key that is only misspelt is reported as `key/misspelt`, one that belongs in \
         another table as `key/misplaced`.\n\n\
         A repository that keeps keys of its own beside those of `reqc` lowers the rule: `\"key/unknown\" = \"off\"` below \
         `[rules]` in `reqc.toml`.";
    MISSPELT_KEY = Error "key/misspelt", "a key is a known one with a slip",
        "The key is a known one but for a letter or two, or for its spelling (`providerInstance`). Its value would have no effect.\n\n\
         * wrong: `enable_tool = true`\n\
         * right: `enable_tools = true`\n\n\
         The file is read as if the key were right, so that nothing else is reported because of it; but a profile with a misspelt \
         key is not compiled, and neither is what extends it.";
    MISPLACED_KEY = Error "key/misplaced", "a key is in the wrong table",
        "The key is known, but in another table of the file, so its value would have no effect. Most often it is a field of the request \
         body that stands above `[body]`, or a key of the profile that stands below a `[…]` header: in TOML, everything below a \
         header belongs to its table.\n\n\
         * wrong: `temperature = 0.7` above `[body]`\n\
         * right: `temperature = 0.7` below `[body]`\n\
         * wrong: `golden_contexts = [\"plain-turn\"]`\n\
         * right: `contexts = [\"plain-turn\"]` below `[golden]`";
    WRONG_TYPE = Error "key/wrong-type", "a value has the wrong type",
        "The key expects another type of value, and guessing would hide the mistake.\n\n\
         * wrong: `enable_tools = \"true\"`\n\
         * right: `enable_tools = true`\n\n\
         A profile with such a mistake is not compiled, and neither is what extends it.";
    INVALID_VALUE = Error "key/invalid-value", "a value is not one of those allowed",
        "The value has the right type, but it is not among the ones that mean something here. The help names the \
         nearest, or all of them.\n\n\
         * wrong: `cache_ttl = \"60m\"`\n\
         * right: `cache_ttl = \"1h\"`\n\n\
         Globs that do not parse, that are longer than 1,000 bytes or nest braces deeper than 8 levels, lists that are longer \
         than they may be, malformed dates, URLs and endpoints that no request can be sent to, headers that belong \
         to the connection (`content-length`, `host`), and names without a single \
         ASCII letter or digit are reported under this code as well.";
    MISSING_KEY = Error "key/missing", "a required key is missing",
        "A profile needs a `name`. A concrete agent also needs `provider_instance`, `endpoint` and `[body]`, its \
         own or inherited. A provider instance needs `name`, `client_api` and `url`. An `[[allow]]` entry needs \
         `code` and `reason`.\n\n\
         A profile that is only there to be extended needs just its name; say so with `abstract = true`, and \
         nothing else is asked of it.";
    NEWER_SCHEMA = Error "key/newer-schema", "the file is written for a newer reqc",
        "`schema_version` is larger than this binary knows. Guessing what the file means would be worse than \
         stopping.\n\n\
         Upgrade reqc. If the number was written by mistake, remove the key: version 1 is the default.";
    OTHER_VERSION = Error "config/other-version", "the repository wants another version of reqc",
        "`version` below `[reqc]` in `reqc.toml` says which versions a repository is compiled with: bundled profiles, partials and \
         schemas come with the program, so another version may make other bodies.\n\n\
         * wrong: `version = \"=0.9.0\"`, compiled with another version\n\
         * right: the version that is installed fits, for instance `version = \"0.9\"` for 0.9.0 and later ones of 0.9\n\n\
         Requirements are written as Cargo writes them: `0.9`, `=0.9.1`, `>=0.9, <0.11`. To upgrade, change the line, and read what \
         `reqc compile --diff` shows against the golden files.";
    LITERAL_SECRET = Error "provider/literal-key", "the file itself contains a key",
        "`api_key_ref` *refers* to a key; the key itself must not be committed.\n\n\
         * wrong: `api_key_ref = \"sk-…\"`\n\
         * right: `api_key_ref = \"env:OPENAI_API_KEY\"`\n\n\
         The other forms are `file:PATH`, `keyring:SERVICE/USER`, and the plain name of an entry of the keyring \
         service `reqc`. What looks like a key is refused as a \
         reference: it begins as keys of a known provider do (`sk-`, `ghp_`, `glpat-`, `xoxb-`, …), is a JSON Web Token, or is 16 \
         and more mixed characters. So is a login in a `url` (`https://USER:PASSWORD@HOST`), a key in the path or in a parameter \
         of a `url` or an `endpoint` (`?key=…`), and a header that carries one by its name (`PRIVATE-TOKEN`) or its value \
         (`Bearer …`): a request line is printed and kept as a golden file.\n\n\
         Anywhere else in a file, in a prompt or a comment, only what is a key for certain is reported: a known beginning with \
         16 and more characters after it, or a private key.\n\n\
         If a real key was committed, revoke it: it stays in the history.";
    INSTANCE_EXTENDS = Error "provider/extends", "a provider instance extends nothing usable",
        "`extends` of a provider instance names another instance; it must exist and must not lead back to \
         itself.\n\n\
         A chain of instances has at most 32.\n\n\
         An instance that takes a bundled name replaces the bundled one, so it cannot extend it: that name \
         now means the new one. Give it a name of its own, or write out `client_api` and `url`.";
    REPEATED_ROSTER = Error "roster/repeated-name", "two rosters have the same name",
        "`reqc route` and programs ask for a roster by its name, so only the first of the two would ever be used.\n\n\
         Rename one of them, or put their agents into one list, in the order in which they should be asked.";
    REPEATED_FAMILY = Error "models/repeated-name", "two families of models have the same name",
        "An entry of a repository replaces the bundled one of its name, so a name stands for one entry. In one file, which of the \
         two is meant would depend on chance.\n\n\
         Rename one of them: families whose patterns fit a model add up.";
    REPEATED_AGENT = Warning "roster/repeated-agent", "an agent is in a roster twice",
        "The first place of an agent in a roster is the one that counts. What its `match` does not accept there, it does not \
         accept further down.\n\n\
         Remove the later entry, or write the name of the agent that was meant.";
    REPEATED_TOOL = Error "tools/repeated-name", "two tools or two servers have the same name",
        "A model calls a tool by its name, and providers refuse two tools of one name. The names of a server's tools begin with \
         that of the server.\n\n\
         Rename one of them.";
    SERVER_CONNECTION = Error "tools/server-connection", "how an MCP server is reached is not clear",
        "A `[[server]]` of `tools.toml` is a program that `reqc` starts (`command`), or at a URL (`url`), never both. `env` and \
         `working_directory` go with `command`; `headers`, `api_key_ref` and `api_key_header` go with `url`.\n\n\
         * wrong: `command = [\"npx\", \"mcp-remote\"]` and `url = \"https://host.example/mcp\"` in one entry\n\
         * right: `url = \"https://host.example/mcp\"`\n\
         * wrong: `headers = { x-team = \"a\" }` beside `command`\n\
         * right: `env = [\"TEAM\"]` beside `command`";
    NO_PROGRAM = Warning "tools/no-program", "the program of a tool or server is not there, or not executable",
        "A tool is offered, but every call of it fails: the model is told that it cannot be run. A server that cannot be started \
         has no tools, and nothing is sent.\n\n\
         A plain name is looked up in `PATH`; anything with a separator is a path, relative to the folder of `tools.toml`. \
         `chmod +x` makes a script executable. There is no shell: arguments are elements of their own.\n\n\
         * wrong: `command = [\"git status\"]`\n\
         * right: `command = [\"git\", \"status\"]`";
    UNUSED_ALLOW = Warning "allow/unused", "an [[allow]] entry silences nothing",
        "The finding that the entry was written for is gone, or the entry has expired. Remove it, so that it \
         cannot hide something new.\n\n\
         Entries are judged only when the whole repository is looked at: never with `--agent` or `--context`.";
}
