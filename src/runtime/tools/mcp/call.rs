//! Performs one call to a server's tool. Reports progress until the result arrives, and cancels the
//! call on the server if the future is dropped.
//!
//! A server reports progress under the token of the request. Progress for calls that have ended or
//! never existed is ignored. `rmcp` dispatches notifications in separate tasks, so a result could
//! overtake earlier progress. Therefore, notifications are intercepted where they are received.

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

/// The maximum number of queued progress messages per call; further messages are dropped.
const WAITING: usize = 64;

/// The calls that are running on a server, by progress token. The token is stored as text, because
/// a server may send a number as a string.
#[derive(Default)]
pub(super) struct Calls(Mutex<HashMap<String, mpsc::Sender<ProgressNotificationParam>>>);

impl Calls {
    /// Sends a call to the server.
    pub(super) async fn begin(
        &self,
        peer: &Peer<RoleClient>,
        call: CallToolRequestParams,
    ) -> Result<Call, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
        // Keep the lock until the token is registered, because a server may respond before that.
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

    /// Passes on the progress of a call.
    async fn tell(&self, told: &ProgressNotificationParam) {
        if let Some(teller) = self.0.lock().await.get(&told.progress_token.0.to_string()) {
            // If the queue is full, a later message is more useful.
            let _ = teller.try_send(told.clone());
        }
    }
}

/// A connection to a server from which progress messages are intercepted.
pub(super) struct Heard<T> {
    connection: T,
    calls: Arc<Calls>,
    /// A received message that has not been passed on yet.
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

    /// Receives the next message. Dropping this future loses no message.
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

/// A call that was sent to the server. Dropping it before its result arrives cancels the call
/// there.
pub(super) struct Call {
    handle: Option<RequestHandle<RoleClient>>,
    progress: mpsc::Receiver<ProgressNotificationParam>,
    /// The result, kept until all earlier progress has been passed on.
    result: Option<Result<CallToolResult, ServiceError>>,
}

/// An event of a running call.
pub(super) enum News {
    /// The progress, as text.
    Progress(String),
    /// The result.
    Result(Box<Result<CallToolResult, ServiceError>>),
}

impl Call {
    /// Returns the next event of the call. The result comes once, as the last event.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let told = match &mut self.handle {
                Some(handle) => tokio::select! {
                    answer = &mut handle.rx => {
                        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                        self.result = Some(answer.and_then(result));
                        self.handle = None;
                        // Pass on queued progress, but accept no more.
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

/// Returns the result of a tool call. `rmcp` parses an empty result as a different kind of
/// response.
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

/// Returns the known content of a result that also has content of unknown kinds. `None` if no kind
/// is unknown.
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

/// Describes the progress of a call, as in `3/10: reading`.
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
