//! The future type for traits that hosts implement.

use std::future::Future;
use std::pin::Pin;

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
