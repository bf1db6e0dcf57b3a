//! The rules about content that is lost on its way into a body.

use crate::diag::rules;

rules! {
    DROPPED = Error[lowerable] "flow/dropped", "content of a conversation never reaches the body",
        "The body is valid and the provider accepts it, but the model never sees the missing content, such as a tool result, an image or \
         the system prompt. reqc reads each body back into text, calls, results and media, and compares these with the conversation that \
         the body was made from. Missing content is reported once for each kind, at the closest place in the template.\n\n\
         * wrong: `{% for block in message.content_blocks %}{% if block.type == \"text\" %}…{% endif %}{% endfor %}`, which writes no \
         calls, results or images\n\
         * right: a branch for each kind of block, or one of the bundled partials: `{% include \"openai/messages.jinja\" %}`\n\n\
         `wire-limits.toml` lists the content that a wire format cannot carry, with reasons and sources. If an agent omits content on \
         purpose, its profile declares that: `leaves_out = [\"images\"]`. Agents that extend it inherit the declaration.";
    ALTERED = Error[lowerable] "flow/altered", "content of a conversation is altered in the body",
        "The model sees something other than the conversation: text that was escaped twice, truncated or HTML-escaped, or a call with \
         different arguments. No provider rejects such a body. If text lost only leading or trailing whitespace, the finding is a \
         warning.\n\n\
         * wrong: `\"text\": {{ tojson(tojson(block.text)) }}`\n\
         * right: `\"text\": {{ tojson(block.text) }}`\n\
         * wrong: `{{ tojson(block.text[:100]) }}`\n\
         * right: the whole text; if agents truncate it on purpose, their profile declares `leaves_out = [\"user-text\"]`";
    DUPLICATED = Warning "flow/duplicated", "text of a conversation appears in the body more than once",
        "Text that is sent twice costs its tokens twice, and the model may think that it was said again. Often a template writes \
         both `message.content`, which joins all text of a message, and the text blocks of `message.content_blocks`, or also puts \
         the system prompt into the first message.\n\n\
         * wrong: `{{ tojson(message.content) }}` next to a loop over `message.content_blocks`\n\
         * right: one of the two";
    REORDERED = Error[lowerable] "flow/reordered", "messages are not in conversation order",
        "The model reads a conversation that never took place. This happens when a template writes all messages with the same role \
         first, or iterates over the history backwards.\n\n\
         * wrong: `{% for message in ctx.history | reverse %}`\n\
         * right: `{% for message in ctx.history %}`";
    UNUSED_DECLARATION = Warning "flow/unused-declaration", "`leaves_out` names content that no agent leaves out",
        "The entry would hide a later loss. Either the agents include the content now, or no context contains it, or their wire \
         formats cannot carry it (`wire-limits.toml`), so no declaration is needed.\n\n\
         This is reported only if all agents are compiled in all contexts.\n\n\
         * wrong: `leaves_out = [\"images\"]` in a profile whose templates write images\n\
         * right: no such entry";
}
