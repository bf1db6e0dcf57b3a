//! The rules about content that is lost on its way into a body.

use crate::diag::rules;

rules! {
    DROPPED = Error[lowerable] "flow/dropped", "content of a conversation never reaches the body",
        "The body is valid and the provider takes it, but the model never sees what is missing: a tool result, an image, the system \
         prompt. Each body is read back into texts, calls, results and media, and compared with the conversation that it was made of. \
         What is missing is reported once for each kind of content, at the place of the template that comes nearest to it.\n\n\
         * wrong: `{% for block in message.content_blocks %}{% if block.type == \"text\" %}…{% endif %}{% endfor %}`, which writes no \
         calls, results or images\n\
         * right: a branch for each kind of block, or one of the bundled partials: `{% include \"openai/messages.jinja\" %}`\n\n\
         What a wire format has no place for is listed in `wire-limits.toml`, with reason and source. What an agent leaves out on purpose \
         its profile says: `leaves_out = [\"images\"]`. Agents that extend it inherit that.";
    ALTERED = Error[lowerable] "flow/altered", "content of a conversation reaches the body in another form",
        "The model sees something other than what was said: a text escaped twice, cut off, or with HTML entities, or other arguments of a \
         call. Nothing refuses such a body. Text that lost white space at its ends is a warning.\n\n\
         * wrong: `\"text\": {{ tojson(tojson(block.text)) }}`\n\
         * right: `\"text\": {{ tojson(block.text) }}`\n\
         * wrong: `{{ tojson(block.text[:100]) }}`\n\
         * right: the whole text; a profile whose agents cut it on purpose says `leaves_out = [\"user-text\"]`";
    DUPLICATED = Warning "flow/duplicated", "a text of a conversation is in the body more than once",
        "A text that is sent twice costs its tokens twice, and the model may take it for something that was said again. Often a \
         template writes both `message.content`, which joins all texts of a message, and the texts among `message.content_blocks`, or \
         puts the system prompt into the first message too.\n\n\
         * wrong: `{{ tojson(message.content) }}` beside a loop over `message.content_blocks`\n\
         * right: one of the two";
    REORDERED = Error[lowerable] "flow/reordered", "messages are in another order than in the conversation",
        "The model reads a conversation that never took place. A template that writes messages of one role first, or goes over the \
         history backwards, does that.\n\n\
         * wrong: `{% for message in ctx.history | reverse %}`\n\
         * right: `{% for message in ctx.history %}`";
    UNUSED_DECLARATION = Warning "flow/unused-declaration", "`leaves_out` names content that no agent leaves out",
        "The entry would hide a later loss. Either the agents carry the content now, no context has any, or their wire formats have no \
         place for it (`wire-limits.toml`), so that nothing needs to be said.\n\n\
         It is only reported if all agents are compiled in all contexts.\n\n\
         * wrong: `leaves_out = [\"images\"]` in a profile whose templates write images\n\
         * right: no such entry";
}
