//! Performs one call of a server's tool: reports its progress until the result, and cancels it on
//! the server when it is dropped.
//!
//! A server reports progress under the token of the request. Progress for calls that have ended or
//! never existed is ignored. `rmcp` dispatches notifications in separate tasks, so that a result
//! can overtake earlier progress. They are therefore intercepted where they are received.

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

/// The maximum number of queued progress messages of one call; more are dropped.
const WAITING: usize = 64;

/// The running calls of a server, by their progress token. A server may write a number as text.
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
        // Locked until the token is registered, since a server may respond first.
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
            // If the queue is full, later progress is more useful.
            let _ = teller.try_send(told.clone());
        }
    }
}

/// The connection to a server, with progress messages intercepted.
pub(super) struct Heard<T> {
    connection: T,
    calls: Arc<Calls>,
    /// A received message that was not passed on yet.
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

    /// Receives the next message. Dropping this future loses none.
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

/// A call that was sent. Dropping it before its result arrives cancels it on the server.
pub(super) struct Call {
    handle: Option<RequestHandle<RoleClient>>,
    progress: mpsc::Receiver<ProgressNotificationParam>,
    /// The result, kept until all earlier progress has been passed on.
    result: Option<Result<CallToolResult, ServiceError>>,
}

/// An event of a call.
pub(super) enum News {
    /// Its progress, in words.
    Progress(String),
    /// Its result.
    Result(Box<Result<CallToolResult, ServiceError>>),
}

impl Call {
    /// Returns the next event of the call. The result comes once, and last.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let told = match &mut self.handle {
                Some(handle) => tokio::select! {
                    answer = &mut handle.rx => {
                        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                        self.result = Some(answer.and_then(result));
                        self.handle = None;
                        // Queued progress is still passed on, but no more is accepted.
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

/// Returns the result of a tool. An empty result parses as another kind of response.
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

/// Returns a result whose content includes unknown kinds, keeping the known content. `None` if it
/// contains no unknown kind.
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

/// Describes the progress of a call: `3/10: reading`.
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
