//! A word that is asked for once a connection is there, right before the first byte goes on it: a name is looked up, a connection and
//! its TLS begin in seconds, and who was allowed to send before that may not be after it.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Whether it may still go; else why not.
pub type LastWord = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

tokio::task_local! {
    /// Whose word counts for what this task sends.
    static OF_TASK: LastWord;
}

/// Does that, each connection within which asks for that word first. They must be of this task: none is kept for another.
pub(crate) async fn within<F: Future>(word: LastWord, sends: F) -> F::Output {
    OF_TASK.scope(word, sends).await
}

/// Around what connects for commands: without a word there is no connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked;

impl<S> Layer<S> for Asked {
    type Service = AskedService<S>;

    fn layer(&self, connects: S) -> Self::Service {
        AskedService(connects)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AskedService<S>(S);

impl<S, R> Service<R> for AskedService<S>
where
    S: Service<R, Error = Cause>,
    S::Future: Send + 'static,
    S::Response: Send,
{
    type Response = S::Response;
    type Error = Cause;
    type Future = BoxFuture<'static, Result<S::Response, Cause>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.0.call(request);
        Box::pin(async move {
            let connection = connecting.await?;
            let word = OF_TASK.try_with(Arc::clone);
            word.map_err(|_nobody| "nobody said that it may go".to_owned())?().map_err(Cause::from)?;
            Ok(connection)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    use crate::web::{self, NoAnswer};

    use super::*;

    /// Sends under a word, or under none, to a place that answers; what came of it, and what the place read.
    async fn sent(word: Option<LastWord>) -> (Result<u16, NoAnswer>, String) {
        let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = place.local_addr().expect("an address");
        let serves = tokio::spawn(async move {
            let (mut stream, _) = place.accept().await.expect("a connection");
            let mut read = [0; 4_096];
            let length = stream.read(&mut read).await.unwrap_or(0);
            let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
            String::from_utf8_lossy(&read[..length]).into_owned()
        });
        let request = web::commands(false, None).expect("a client").post(format!("http://{address}/off"));
        let end = Instant::now() + Duration::from_secs(30);
        let told = match word {
            Some(word) => web::exchange_at_a_word(1_024, request, end, word).await,
            None => web::exchange_up_to(1_024, request, end).await,
        };
        (told.map(|answer| answer.code.as_u16()), serves.await.expect("it ends"))
    }

    #[tokio::test]
    async fn without_the_word_nothing_goes_on_the_connection() {
        let refuses: LastWord = Arc::new(|| Err("it leads no more".to_owned()));
        for (word, words) in [(Some(refuses), "it leads no more"), (None, "nobody said that it may go")] {
            let (told, read) = sent(word).await;
            let Err(NoAnswer::NeverSent(why)) = told else { panic!("{told:?}") };
            assert!(why.contains(words), "{why}");
            assert_eq!(read, "");
        }
    }

    #[tokio::test]
    async fn with_it_the_request_goes() {
        let asked = Arc::new(AtomicBool::new(false));
        let hears = asked.clone();
        let word: LastWord = Arc::new(move || {
            let again = hears.swap(true, Ordering::SeqCst);
            if again { Err("asked twice".to_owned()) } else { Ok(()) }
        });
        let (told, read) = sent(Some(word)).await;
        assert!(matches!(told, Ok(202)) && asked.load(Ordering::SeqCst), "{told:?}");
        assert!(read.starts_with("POST /off HTTP/1.1"), "{read}");
    }
}
