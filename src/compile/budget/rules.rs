//! The rules of `[[budget]]`.

crate::diag::rules! {
    EXCEEDED = Error[lowerable] "budget/exceeded", "a body takes more than its budget",
        "A `[[budget]]` entry of `reqc.toml` says how many tokens, bytes or tools the bodies of some agents may take, or how much of them \
         must come from the cache. The finding stands at the limit, once for each agent, with its worst body; the second place \
         wrote the dearest part of that body.\n\n\
         Tokens are counted by the model's own tokenizer where this build has it, and estimated elsewhere: the message then says \
         *about*. `reqc render AGENT --context NAME --tokens` shows them part by part.\n\n\
         * wrong: `tokens = 8000`, and a system prompt of 9,000 tokens\n\
         * right: a shorter prompt, or `tokens = 10000` in a change that somebody reads";
    UNUSED = Warning "budget/unused", "a [[budget]] entry is for no body",
        "No agent matches `agent`, or no context matches `context`, so the budget limits nothing. Most often a pattern is misspelt, or \
         the agent was renamed.\n\n\
         * wrong: `agent = \"Reviewr*\"`\n\
         * right: `agent = \"Reviewer*\"`";
}
