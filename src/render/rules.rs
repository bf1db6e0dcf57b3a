//! The rules about templates.

crate::diag::rules! {
    SYNTAX = Error "template/syntax", "a template does not parse",
        "The text does not follow Jinja's grammar: for example, an unclosed tag, `{% if %}` without `{% endif \
         %}`, or an operator without an operand. In a TOML string, the position is that in the file, with \
         escapes and line continuations taken into account.\n\n\
         A string in `[body]` is a template if it contains `{{` or `{%`. For text that contains them but \
         is not a template, write `{% raw %}\"…\"{% endraw %}`, with the JSON quotes inside.";
    UNDEFINED = Error "template/undefined", "a template reads something that does not exist",
        "Undefined values are errors: a misspelled `msg.contnet` is reported, and never sent as an empty string. Members that no \
         conversation can have, and names that no system prompt can use, are reported even in code that no context reaches.\n\n\
         Check whether an optional value exists before you read it:\n\n\
         * `{% if ctx.system_prompt is defined %}`\n\
         * `{% if existsIn(ctx, \"system_prompt\") %}`\n\n\
         `docs/templates.md` lists what every context has and what is optional.";
    IMPOSSIBLE_MEMBER = Error[lowerable] "template/impossible-member", "a guard checks for a member that no conversation can have",
        "`is defined`, `default`, `existsIn` and `selectattr` accept an absent member. A misspelled name in them is therefore not an \
         error: the branch never runs, and its output never reaches the body. The members of `ctx`, messages, blocks, files and tools are \
         a closed set, so such a name is always a mistake. Where an object is known only by its name, such as `message` in a partial, \
         only a name that is close to an existing one is reported, as a warning.\n\n\
         * wrong: `{% if ctx.sytem_prompt is defined %}`\n\
         * right: `{% if ctx.system_prompt is defined %}`\n\
         * wrong: `{{ message.contnet | default('') }}`\n\
         * right: `{{ message.content }}`\n\n\
         `docs/templates.md` lists the members.";
    IMPOSSIBLE_WORD = Error[lowerable] "template/impossible-word", "a template compares a role, a type or a source with an impossible word",
        "The roles of messages, the types of blocks and the sources of documents are closed sets. A comparison with any other word is \
         never true, and the content that it should select does not reach the body. A word that resembles none of them is a warning, as is \
         a word where the object is known only by its usual name, such as `message` in a partial.\n\n\
         * wrong: `filter_by_type(message.content_blocks, \"tool_user\")`\n\
         * right: `filter_by_type(message.content_blocks, \"tool_use\")`\n\
         * wrong: `{% if message.role == \"asistant\" %}`\n\
         * right: `{% if message.role == \"assistant\" %}`\n\n\
         `docs/templates.md` lists the words.";
    UNESCAPED = Error[lowerable] "flow/unescaped", "a value is between JSON quotes without being escaped",
        "A value between quotes is a JSON string only as long as it contains no quote, backslash or line break. The contexts may \
         contain none, but a real conversation will: then the body is not JSON, and no request is sent. Text, titles and paths may contain \
         anything, so this is an error. IDs, names and media types usually contain no quotes, so this is a warning. It is also a warning \
         if the value is recognised only by the usual name of its object.\n\n\
         * wrong: `\"title\": \"{{ block.title }}\"`\n\
         * right: `\"title\": {{ tojson(block.title) }}`, which writes the quotes itself\n\
         * wrong: `\"url\": \"data:{{ image.media_type }};base64,{{ image.data }}\"`\n\
         * right: `\"url\": {{ tojson(\"data:\" ~ image.media_type ~ \";base64,\" ~ image.data) }}`\n\n\
         A macro that assembles text leaves its parts unescaped: encode its result once, where it is written.";
    UNKNOWN_NAME = Error "template/unknown-name", "a template calls a function, filter or test that does not exist",
        "Calls are checked in every branch, even in those that never run. `docs/templates.md` lists the \
         functions. System prompts and bodies have different functions, so a body never reads files.\n\n\
         * wrong: `{{ text.strip() }}`: template values have no methods\n\
         * right: `{{ text | trim }}`";
    FAILED = Error "template/failed", "a template fails while it is rendered",
        "An operation does not work for its values: for example, adding a number to a list, applying a filter to the wrong type, \
         or unpacking a value that is not a list. The finding points to the tag that failed, with the includes that led there.";
    TOO_MANY_STEPS = Error "template/too-many-steps", "a template takes too many steps",
        "Rendering is limited to 200,000 steps, plus 5,000 per content block of the conversation, so that an endless loop \
         cannot hang a build or a conversation. Normal templates need a few hundred steps per message.";
    TOO_LONG = Error "template/too-long", "a template is too long",
        "A template may contain at most 4 MiB of text, 10,000 tags and 64 `{% block %}`. A macro may have \
         at most 50 parameters, and a name at most 256 bytes. At most 256 different namespace members may be assigned. The longest handwritten templates have a few hundred tags.\n\n\
         Split it into partials. Data that a prompt quotes belongs in a file, which `read_file` reads.\n\n\
         * wrong: a system prompt with a list of 20,000 words, each in a tag\n\
         * right: `{{ read_file(':/docs/words.md') }}`";
    TOO_MUCH_WORK = Error "template/too-much-work", "a template processes too much data",
        "Each operation costs units in proportion to the data it touches: 1 for a byte read, 2 for a byte written, 32 for a list \
         element, 16 for a step. A template may spend 400 million units, and so may all templates of one body together. That is \
         enough for an output of 32 MiB, and takes a second or two at most. The count is the same on every machine.\n\n\
         Look for a loop that repeatedly copies, joins, compares or searches long strings or lists.\n\n\
         * wrong: `{% for i in range(100000) %}{% set ns.text = ns.text ~ ctx.history[0].content %}{% endfor %}`\n\
         * right: collect the parts once, and join them: `parts | join`";
    TOO_DEEP = Error "template/too-deep", "a template is nested too deeply",
        "A macro recurses endlessly, or a chain of includes is too long. The limit is 300 units: each include counts as 10, each macro \
         call as 4. The error also occurs if one tag chains more than 250 operators, filters or members, or a template has more than 250 `{% elif %}`.\n\n\
         For nested data, such as tool input, `tojson(value)` needs no recursion at all.";
    TOO_LARGE = Error "template/output-too-large", "a template writes more than 32 MiB",
        "No provider accepts such a request. Look for a loop that repeats the whole history.";
    INCLUDE_MISSING = Error "include/missing", "an included partial does not exist",
        "Includes are checked in every branch when the repository is loaded. The name is relative to \
         `partials/`, with or without that prefix, and never relative to the including file.\n\n\
         * wrong: `{% include \"mesages.jinja\" %}`\n\
         * right: `{% include \"messages.jinja\" %}`";
    INCLUDE_NOWHERE = Warning "include/nowhere", "an optional partial does not exist anywhere",
        "`ignore missing` writes nothing if the partial is missing. If it exists neither in the repository nor among the bundled \
         partials, the tag never writes anything, usually because the name is misspelled.\n\n\
         * wrong: `{% include \"mesages.jinja\" ignore missing %}`\n\
         * right: `{% include \"messages.jinja\" %}`\n\n\
         A library whose users may add the partial can allow the finding for this file with an `[[allow]]` entry.";
    INCLUDE_NAME = Error "include/name", "an include name is not allowed",
        "Includes can read only the bundled `partials/` and the repository's own. Names with `..`, a leading \
         `/`, a backslash, a scheme or a drive letter are rejected, so that a template can never read another \
         file.\n\n\
         * wrong: `{% include \"../elsewhere/messages.jinja\" %}`\n\
         * right: `{% include \"partials/shared/messages.jinja\" %}`";
    INCLUDE_DYNAMIC = Error "include/dynamic", "an include name is computed",
        "The name must be a string literal, or a literal list of strings: only then can it be checked before \
         anything is sent.\n\n\
         * wrong: `{% include \"blocks/\" ~ block.type ~ \".jinja\" %}`\n\
         * right: `{% if block.type == \"text\" %}{% include \"blocks/text.jinja\" %}{% endif %}`, one branch \
         per type";
    INCLUDE_CYCLE = Error "include/cycle", "partials include each other in a cycle",
        "Rendering would never end. The message shows the cycle; remove one of its includes. For recursion over data, use a \
         macro or a recursive loop.";
    LOOP_INDEX = Warning "dialect/loop-index", "`loop.index` in a template that uses inja syntax",
        "The template uses inja syntax, where `loop.index` counts from 0; here, as in Jinja, it counts from 1. Nothing \
         fails, but the numbers are different.\n\n\
         Write `loop.index0` to count from 0, or remove the inja syntax and keep `loop.index`; or set `dialect = \"inja\"` \
         in `reqc.toml`, which makes `loop.index` count from 0 everywhere.";
    SET_IN_LOOP = Warning "template/set-in-loop", "a value set in a loop is lost when the iteration ends",
        "A value that `set` gives to a variable inside a loop is lost when that iteration ends. In the next iteration, and after the loop, \
         the variable has the value from before the loop, so counters and flags never change. A namespace keeps its values.\n\n\
         * wrong: `{% set n = 0 %}{% for m in ctx.history %}{% set n = n + 1 %}{% endfor %}{{ n }}` writes `0`\n\
         * right: `{% set ns = namespace(n=0) %}{% for m in ctx.history %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}`\n\n\
         Often no variable is needed: `length(ctx.history)` gives the number of messages, `loop.first` is true in the first iteration, and \
         `selectattr` selects elements. If the variable after the loop is meant to be a different one, rename it.";
    DIALECT_SET_IN_LOOP = Warning "dialect/set-in-loop", "a value set in a loop is lost, in a template that uses inja syntax",
        "In inja, a `set` inside a loop outlives the loop; in Jinja, it is lost when the iteration ends: reading the \
         variable afterwards, or in the next iteration, gives the value from before the loop. Use a namespace: \
         `{% set ns = namespace(found=false) %}` … `{% set ns.found = true %}`.";
    LOOP_PARENT = Error "dialect/loop-parent", "`loop.parent` does not exist here",
        "inja reaches the outer loop through `loop.parent`. Here, keep the outer loop in a variable: `{% set \
         outer = loop %}` before the inner loop.";
    LINE_STATEMENT = Warning "dialect/line-statement", "a line that begins with `##` looks like a statement, but is text",
        "inja reads `## for x in y` at the beginning of a line as the tag `{% for x in y %}`, and Jinja can be configured to do so. Here, \
         such a line is text in every dialect, because prompts are full of Markdown headings. The client whose collections are read with \
         `dialect = \"inja\"` disables line statements as well.\n\n\
         Write tags. A heading alone is not a finding: at least one of the lines must end a block (`## endfor`, `## endif`, `## \
         endblock`), set a variable or include a file.\n\n\
         * wrong: `## for message in ctx.history`\n\
         * right: `{% for message in ctx.history %}`",
        seen "2026-11" {
            "pkg:github/Palm1r/QodeAssist#ContextRenderer.cpp":
                "the client disables line statements with `set_line_statement`",
            "pkg:github/pantor/inja#README.md": "inja supports line statements",
        };
    PROMPT_TEXT = Warning "dialect/prompt-text", "a prompt that uses inja syntax renders differently here",
        "The prompt uses inja syntax together with something that its original client silently handles differently: there, \
         `head_lines` leaves out the last newline, `file_exists` is true for folders, `dirname(\"c.txt\")` is `.`, \
         `ext(\".bashrc\")` is `bashrc`, and a prompt keeps its final newline.\n\n\
         For an existing collection, set `dialect = \"inja\"` in `reqc.toml`. Otherwise write `{% elif %}`, `loop.first` and so on, \
         which marks the prompt as written for reqc.",
        seen "2026-11" {
            "pkg:github/Palm1r/QodeAssist#ContextRenderer.cpp":
                "the client uses Qt's file functions",
        };
    PROMPT_MISSING = Error "prompt/missing-file", "a system prompt reads a file that does not exist",
        "`read_file` needs its file; if it is optional, check `file_exists` first. `:/x` is file `x` of the profile's own \
         layer, or else of the bundled one; a relative path is in the project. While compiling, the project is the virtual \
         one of the context, not the current folder.";
    PROMPT_OUTSIDE = Error "prompt/outside", "a system prompt reads outside the allowed folders",
        "Reads are confined to the project folder, the agent repository and bundled resources, after links are resolved. Everything else \
         is rejected, even for `file_exists`: a prompt must not depend on whether a file exists elsewhere. Hidden files in these folders \
         are rejected too: names that begin with a dot (`.git`, `.env`), and private keys, because they often contain tokens and \
         passwords. A context's virtual project follows the same rule, so that any prompt that compiles can also be sent.\n\n\
         * rejected: `/etc/hosts`, `../notes.md`, `${HOME}/.config/rules.md`, `.git/config`, `.env`, `deploy/id_rsa`, \
         `tls/server.key`\n\
         * read: `${PROJECT_DIR}/AGENTS.md`, `docs/style.md` (in the project), `${CONFIG_DIR}/roles/x.md`, `:/roles/x.md`";
    PROMPT_VARIABLE = Error "prompt/unknown-variable", "a path contains an unknown variable",
        "`${PROJECT_DIR}`, `${CONFIG_DIR}` and `${HOME}` are expanded in the arguments of file functions and \
         in the prompt's own text. Other variables are not: an environment variable would make the prompt \
         depend on the machine.\n\n\
         `file_exists` returns `false` for such a path, so that an older prompt can check before it reads.";
    UNEXPANDED = Warning "prompt/unexpanded-variable", "a prompt prints `${PROJECT_DIR}` without expanding it",
        "`${PROJECT_DIR}`, `${CONFIG_DIR}` and `${HOME}` are expanded in the prompt's own text and in arguments of file functions. \
         In a string that an expression prints, they are ordinary text, and the model sees the variable's name.\n\n\
         * wrong: `{{ \"Notes are in ${PROJECT_DIR}/docs\" }}`\n\
         * right: `Notes are in ${PROJECT_DIR}/docs`\n\
         * right: `{{ read_file(\"${PROJECT_DIR}/AGENTS.md\") }}`\n\n\
         If `set` assigns such a string to a variable, the finding is reported where the variable is printed. To show the model the name \
         itself, write it between `{% raw %}` and `{% endraw %}`.";
    PROMPT_NOT_TEXT = Error "prompt/not-text", "a system prompt reads a file that is not text or is too large",
        "Prompts can read files of at most 64 MiB that contain UTF-8 text without NUL bytes. Line endings become `\\n\
         ` and a byte-order mark is dropped, so that a checkout never changes a prompt.\n\n\
         An image or an archive cannot be part of a system prompt. Convert text from a different encoding: `iconv -f \
         WINDOWS-1252 -t UTF-8`.";
}
