//! One call of a server's tool: what comes until its result is there, and word to the server if
//! nobody waits for that any more.
//!
//! A server reports progress under the token of the request. It may mention calls that ended, or
//! that never were: nobody hears that. `rmcp` hands notifications on in tasks of their own, where a
//! result overtakes what was reported before it. So they are heard where they come in.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock,
    JsonRpcMessage, ProgressNotificationParam, ServerNotification, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::sync::{Mutex, mpsc};

use super::result::UNKNOWN_CONTENT;
use crate::runtime::failure;

/// The most progress messages of one call that wait to be read; more are dropped.
const WAITING: usize = 64;

/// Calls of a server that run, by the token of their progress. A server may write a number as text.
#[derive(Default)]
pub(super) struct Calls(Mutex<HashMap<String, mpsc::Sender<ProgressNotificationParam>>>);

impl Calls {
    /// Sends a call.
    pub(super) async fn begin(
        &self,
        peer: &Peer<RoleClient>,
        call: CallToolRequestParams,
    ) -> Result<Call, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
        // Locked until the token is known here: a server may be faster.
        let mut running = self.0.lock().await;
        let handle = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await?;
        let (teller, progress) = mpsc::channel(WAITING);
        running.retain(|_, teller| !teller.is_closed());
        running.insert(handle.progress_token.0.to_string(), teller);
        Ok(Call {
            handle: Some(handle),
            progress,
            result: None,
        })
    }

    /// The server says how far a call is.
    async fn tell(&self, told: &ProgressNotificationParam) {
        if let Some(teller) = self.0.lock().await.get(&told.progress_token.0.to_string()) {
            // One that nobody has time to hear says less than the next.
            let _ = teller.try_send(told.clone());
        }
    }
}

/// The connection to a server, where progress is heard.
pub(super) struct Heard<T> {
    connection: T,
    calls: Arc<Calls>,
    /// The message that came in and was not handed on yet.
    message: Option<RxJsonRpcMessage<RoleClient>>,
}

impl<T> Heard<T> {
    pub(super) fn new(connection: T, calls: Arc<Calls>) -> Heard<T> {
        Heard {
            connection,
            calls,
            message: None,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Heard<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.connection.send(message)
    }

    /// Nothing is lost if this future is dropped.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if self.message.is_none() {
            self.message = self.connection.receive().await;
        }
        if let Some(JsonRpcMessage::Notification(heard)) = &self.message
            && let ServerNotification::ProgressNotification(progress) = &heard.notification
        {
            self.calls.tell(&progress.params).await;
        }
        self.message.take()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.connection.close()
    }
}

/// A call that was sent. Dropping it before its result is there tells the server that nobody waits
/// any more.
pub(super) struct Call {
    handle: Option<RequestHandle<RoleClient>>,
    progress: mpsc::Receiver<ProgressNotificationParam>,
    /// The result, until what was reported before that is heard.
    result: Option<Result<CallToolResult, ServiceError>>,
}

/// The news of a call.
pub(super) enum News {
    /// How far it is, in words.
    Progress(String),
    /// It ended.
    Result(Box<Result<CallToolResult, ServiceError>>),
}

impl Call {
    /// Returns what comes next of the call. Its result comes once, and last.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let told = match &mut self.handle {
                Some(handle) => tokio::select! {
                    answer = &mut handle.rx => {
                        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                        self.result = Some(answer.and_then(result));
                        self.handle = None;
                        // What waits is still heard, and nothing more.
                        self.progress.close();
                        continue;
                    }
                    Some(told) = self.progress.recv() => told,
                },
                None => match self.progress.recv().await {
                    Some(told) => told,
                    None => {
                        let result = self
                            .result
                            .take()
                            .unwrap_or(Err(ServiceError::TransportClosed));
                        return News::Result(Box::new(result));
                    }
                },
            };
            return News::Progress(in_words(&told));
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let cancelling = handle.cancel(Some("nobody waits for the result any more".to_owned()));
            drop(runtime.spawn(cancelling));
        }
    }
}

/// The result of a tool. One that says nothing at all looks like another kind of answer.
fn result(answer: ServerResult) -> Result<CallToolResult, ServiceError> {
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
            Ok(CallToolResult::default())
        }
        ServerResult::CustomResult(other) if is_nothing(&other.0) => Ok(CallToolResult::default()),
        ServerResult::CustomResult(other) => {
            with_unknown_content(other.0).ok_or(ServiceError::UnexpectedResponse)
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn is_nothing(value: &serde_json::Value) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.keys().all(|member| member == "_meta"))
}

/// A result that has content of kinds that are not known beside others: what else the tool said
/// counts. `None` if nothing is known.
fn with_unknown_content(mut result: serde_json::Value) -> Option<CallToolResult> {
    let content = result.get_mut("content")?.as_array_mut()?;
    if content.iter().all(is_unknown) {
        return None;
    }
    for block in content.iter_mut().filter(|block| is_unknown(block)) {
        *block = serde_json::json!({"type": "text", "text": UNKNOWN_CONTENT});
    }
    serde_json::from_value(result).ok()
}

fn is_unknown(block: &serde_json::Value) -> bool {
    serde_json::from_value::<ContentBlock>(block.clone()).is_err()
}

/// Returns how far a call is: `3/10: reading`.
fn in_words(told: &ProgressNotificationParam) -> String {
    let far = match told.total {
        Some(total) => format!("{}/{total}", told.progress),
        None => told.progress.to_string(),
    };
    let message = failure::snippet(told.message.as_deref().unwrap_or_default().as_bytes());
    if message.is_empty() {
        far
    } else {
        format!("{far}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::CustomResult;
    use serde_json::json;

    use super::*;

    #[test]
    fn content_of_kinds_that_are_not_known_loses_nothing_of_the_rest() {
        let of = |value| result(ServerResult::CustomResult(CustomResult(value)));
        let known = json!({"content": [{"type": "text", "text": "one"}, {"type": "hologram", "data": "x"}], "isError": true});
        let told = super::super::result::output(of(known).expect("a result"), 1_000);
        assert_eq!(
            (&*told.content, told.is_error),
            (&*format!("one\n{UNKNOWN_CONTENT}"), true)
        );
        for none in [
            json!({"content": [{"type": "hologram"}]}),
            json!({"content": "one"}),
            json!({"contents": []}),
            json!(["one"]),
        ] {
            assert!(
                matches!(of(none.clone()), Err(ServiceError::UnexpectedResponse)),
                "{none}"
            );
        }
    }
}
