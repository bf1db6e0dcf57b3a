//! The rules of templates.

crate::diag::rules! {
    SYNTAX = Error "template/syntax", "a template does not parse",
        "The text does not follow Jinja's grammar: an unclosed tag, `{% if %}` without `{% endif %}`, an operator \
         without its operand. In a TOML string the position is that of the file, escapes and line continuations \
         included.\n\n\
         A string of `[body]` is a template as soon as it holds `{{` or `{%`. For text that \
         holds them and is not a template, write `{% raw %}\"…\"{% endraw %}`, with the quotes of JSON inside.";
    UNDEFINED = Error "template/undefined", "a template reads something that is not there",
        "Undefined values are strict: a misspelt `msg.contnet` is an error, not an empty string that a provider \
         answers to. A member that no conversation has, and a name that no system prompt has, are found wherever they are written: \
         also where no context comes to them.\n\n\
         For what may be absent, ask first:\n\n\
         * `{% if ctx.system_prompt is defined %}`\n\
         * `{% if existsIn(ctx, \"system_prompt\") %}`\n\n\
         `docs/templates.md` lists what every context holds and what is optional.";
    IMPOSSIBLE_MEMBER = Error[lowerable] "template/impossible-member", "a guard asks for a member that no conversation can have",
        "`is defined`, `default`, `existsIn` and `selectattr` take what is absent for an answer. A misspelt name after them is not an error: the \
         branch never runs, and what it would write never reaches the body. The members of `ctx`, messages, blocks, files and \
         tools are a closed set, so such a name is always a mistake. Where an object is known by its name alone, as `message` in a \
         partial, only a name that is near to one that exists is reported, as a warning.\n\n\
         * wrong: `{% if ctx.sytem_prompt is defined %}`\n\
         * right: `{% if ctx.system_prompt is defined %}`\n\
         * wrong: `{{ message.contnet | default('') }}`\n\
         * right: `{{ message.content }}`\n\n\
         `docs/templates.md` lists the members.";
    UNESCAPED = Error[lowerable] "flow/unescaped", "a value is between quotes of JSON without being escaped",
        "A value that is written between quotes is a JSON string as long as it has no quote, backslash or line break in it. The contexts may \
         have none, and a conversation will: the body is not JSON then, and no request is sent. Text, titles and paths may hold anything: an \
         error. Ids, names and media types usually hold no quotes: a warning, as is a value that is known by the usual name of its object \
         alone.\n\n\
         * wrong: `\"title\": \"{{ block.title }}\"`\n\
         * right: `\"title\": {{ tojson(block.title) }}`, which writes the quotes itself\n\
         * wrong: `\"url\": \"data:{{ image.media_type }};base64,{{ image.data }}\"`\n\
         * right: `\"url\": {{ tojson(\"data:\" ~ image.media_type ~ \";base64,\" ~ image.data) }}`\n\n\
         A macro that puts text together leaves its parts as they are: its result is encoded once, where it is written.";
    UNKNOWN_NAME = Error "template/unknown-name", "a template calls a function, filter or test that does not exist",
        "Checked in every branch, also in those that never run. `docs/templates.md` lists the functions; system \
         prompts and bodies have different ones, so that a body never reads files.\n\n\
         * wrong: `{{ text.strip() }}`: values have no methods here\n\
         * right: `{{ text | trim }}`";
    FAILED = Error "template/failed", "a template fails while it is rendered",
        "An operation does not fit its values: adding a number to a list, a filter on the wrong type, unpacking what cannot be \
         unpacked. The finding stands at the tag that failed, with the includes that led there.";
    TOO_MANY_STEPS = Error "template/too-many-steps", "a template takes too many steps",
        "Rendering is limited to 200,000 steps plus 5,000 per content block of the conversation, so that a loop that never \
         ends does not hang a build or a conversation. Normal templates need a few hundred steps per message.";
    TOO_LONG = Error "template/too-long", "a template is too long",
        "A template may have 4 MiB of text, 10,000 tags, 64 `{% block %}`, macros of 50 parameters and names of 256 bytes, and \
         assign 256 different members of namespaces. The longest templates that people write have a few hundred tags.\n\n\
         Divide it into partials. Data that a prompt quotes belongs in a file, which `read_file` reads.\n\n\
         * wrong: a system prompt with a list of 20,000 words, each in a tag\n\
         * right: `{{ read_file(':/docs/words.md') }}`";
    TOO_MUCH_WORK = Error "template/too-much-work", "a template works on too much data",
        "Each operation costs units by the size of what it touches: a byte that is read 1, a byte that is made 2, an element of a \
         list 32, a step 16. A template may spend 400 million of them, and so may the templates of one body together: enough for an \
         output of 32 MiB, and less than a second or two of work. The count is the same on every machine.\n\n\
         Look for a loop that copies, joins, compares or searches long texts or lists again and again.\n\n\
         * wrong: `{% for i in range(100000) %}{% set ns.text = ns.text ~ ctx.history[0].content %}{% endfor %}`\n\
         * right: collect the parts once, and join them: `parts | join`";
    TOO_DEEP = Error "template/too-deep", "a template nests too deeply",
        "A macro that calls itself without end, or a very long chain of includes: the limit is 300, where an include counts 10 \
         and a macro call 4. Or one tag that chains more than 250 operators, filters or members, or a template with more \
         than 250 `{% elif %}`.\n\n\
         For data that is nested, such as tool input, `tojson(value)` needs no recursion at all.";
    TOO_LARGE = Error "template/output-too-large", "a template writes more than 32 MiB",
        "No provider takes such a request. Look for a loop that repeats the whole history.";
    INCLUDE_MISSING = Error "include/missing", "an included partial does not exist",
        "Includes are checked when the repository is loaded, in every branch. The name is relative to \
         `partials/`, with or without that prefix; it is never relative to the file that includes.\n\n\
         * wrong: `{% include \"mesages.jinja\" %}`\n\
         * right: `{% include \"messages.jinja\" %}`";
    INCLUDE_NOWHERE = Warning "include/nowhere", "an optional partial exists nowhere",
        "`ignore missing` writes nothing if the partial is not there. If it exists neither in the repository nor among the bundled ones, the tag \
         never writes anything, most often because the name is misspelt.\n\n\
         * wrong: `{% include \"mesages.jinja\" ignore missing %}`\n\
         * right: `{% include \"messages.jinja\" %}`\n\n\
         A library whose users may add the partial names the file in an `[[allow]]`.";
    INCLUDE_NAME = Error "include/name", "an include name is not allowed",
        "Includes reach only the bundled `partials/` and the repository's own. Names with `..`, a leading `/`, a \
         backslash, a scheme or a drive letter are refused, so that a template can never read another file.\n\n\
         * wrong: `{% include \"../elsewhere/messages.jinja\" %}`\n\
         * right: `{% include \"partials/shared/messages.jinja\" %}`";
    INCLUDE_DYNAMIC = Error "include/dynamic", "an include name is computed",
        "The name must be a string literal, or a literal list of them: only then can it be checked before \
         anything is sent.\n\n\
         * wrong: `{% include \"blocks/\" ~ block.type ~ \".jinja\" %}`\n\
         * right: `{% if block.type == \"text\" %}{% include \"blocks/text.jinja\" %}{% endif %}`, one branch per \
         type";
    INCLUDE_CYCLE = Error "include/cycle", "partials include each other in a circle",
        "Rendering would never end. The message shows the circle; one of its includes must go. For recursion over data, use a \
         macro or a recursive loop.";
    LOOP_INDEX = Warning "dialect/loop-index", "`loop.index` in a template of the other dialect",
        "The template uses spellings of inja, where `loop.index` counts from 0; here, as in Jinja, it counts from 1. Nothing \
         fails, the numbers are just different.\n\nWrite `loop.index0` to count from 0, or `loop.index` after removing the \
         inja spellings; or set `dialect = \"inja\"` in `reqc.toml`, which makes `loop.index` count from 0 everywhere.";
    SET_IN_LOOP = Warning "dialect/set-in-loop", "a variable set in a loop is read after it, in a template of the other dialect",
        "In inja a `set` inside a loop outlives it; in Jinja it does not: the value read afterwards is the one from before the \
         loop. Use a namespace: `{% set ns = namespace(found=false) %}` … `{% set ns.found = true %}`.";
    LOOP_PARENT = Error "dialect/loop-parent", "`loop.parent` does not exist here",
        "inja reaches the outer loop through `loop.parent`. Here the outer loop's values are kept in a variable: \
         `{% set outer = loop %}` before the inner loop.";
    LINE_STATEMENT = Warning "dialect/line-statement", "a line that begins with `##` looks like a statement, and is text",
        "inja reads `## for x in y` at the beginning of a line as the tag `{% for x in y %}`, and Jinja can be told to. Here such a line is \
         text in every dialect, because prompts are full of Markdown headings. The client whose collections are read with \
         `dialect = \"inja\"` has switched line statements off too.\n\n\
         Write tags. A heading alone is not a finding: one of the lines has to end a block (`## endfor`, `## endif`, `## endblock`), set a \
         variable or include a file.\n\n\
         * wrong: `## for message in ctx.history`\n\
         * right: `{% for message in ctx.history %}`",
        seen "2026-11" {
            "pkg:github/Palm1r/QodeAssist#ContextRenderer.cpp": "`set_line_statement`",
            "pkg:github/pantor/inja#README.md": "line statements",
        };
    PROMPT_TEXT = Warning "dialect/prompt-text", "a prompt of the other dialect gets another text here",
        "The prompt uses spellings of inja, and something that the original client understands differently, without a word: \
         `head_lines` leaves out the last line end there, `file_exists` is true for folders, `dirname(\"c.txt\")` is `.`, \
         `ext(\".bashrc\")` is `bashrc`, and a prompt keeps its last line end.\n\n\
         Set `dialect = \"inja\"` in `reqc.toml` for a collection as it is; or write `{% elif %}`, `loop.first` and so on, which says \
         that the prompt is written for reqc.",
        seen "2026-11" {
            "pkg:github/Palm1r/QodeAssist#ContextRenderer.cpp": "its file functions are those of Qt",
        };
    PROMPT_MISSING = Error "prompt/missing-file", "a system prompt reads a file that does not exist",
        "`read_file` needs its file; ask `file_exists` first if it is optional. `:/x` is file `x` of the profile's own layer, \
         then of the bundled one; a relative path is one of the project. While compiling, the project is the virtual one of \
         the context, not the folder you stand in.";
    PROMPT_OUTSIDE = Error "prompt/outside", "a system prompt reads outside what it may",
        "Reads are confined to the project folder, the agent repository and bundled resources, links resolved. \
         Anything else is refused, also for `file_exists`: whether a file exists elsewhere must not change a \
         prompt. So is what is hidden in them: names that begin with a dot (`.git`, `.env`), and private keys, where tokens and \
         passwords lie. A context's virtual project follows the same rule, so that what compiles can be sent.\n\n\
         * refused: `/etc/hosts`, `../notes.md`, `${HOME}/.config/rules.md`, `.git/config`, `.env`, `deploy/id_rsa`, `tls/server.key`\n\
         * read: `${PROJECT_DIR}/AGENTS.md`, `docs/style.md` (of the project), `${CONFIG_DIR}/roles/x.md`, \
         `:/roles/x.md`";
    PROMPT_VARIABLE = Error "prompt/unknown-variable", "a path holds a variable that is not known",
        "`${PROJECT_DIR}`, `${CONFIG_DIR}` and `${HOME}` are expanded in the arguments of file functions and in \
         the prompt's own text. Others are not: an environment variable would make the prompt depend on the \
         machine.\n\n\
         `file_exists` answers `false` for such a path, so that an older prompt can ask before it reads.";
    UNEXPANDED = Warning "prompt/unexpanded-variable", "a prompt prints `${PROJECT_DIR}` as it is written",
        "`${PROJECT_DIR}`, `${CONFIG_DIR}` and `${HOME}` are expanded in the prompt's own text and in arguments of file functions. In \
         a string that an expression prints they are text like any other, and the model sees the variable's name.\n\n\
         * wrong: `{{ \"Notes are in ${PROJECT_DIR}/docs\" }}`\n\
         * right: `Notes are in ${PROJECT_DIR}/docs`\n\
         * right: `{{ read_file(\"${PROJECT_DIR}/AGENTS.md\") }}`\n\n\
         A variable that `set` gives such a string is followed to where it is printed. To show a prompt's reader the name itself, \
         write it between `{% raw %}` and `{% endraw %}`.";
    PROMPT_NOT_TEXT = Error "prompt/not-text", "a system prompt reads a file that is not text",
        "Files that prompts read are UTF-8 text without NUL bytes, of at most 64 MiB. Line endings become `\\n` \
         and a byte-order mark is dropped, so that a checkout never changes a prompt.\n\n\
         An image or an archive cannot be part of a system prompt; a text in another encoding can be converted: \
         `iconv -f WINDOWS-1252 -t UTF-8`.";
}
