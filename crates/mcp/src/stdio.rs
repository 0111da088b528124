//! The server on standard input and output, until the input ends.

use std::io;

use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::lines::Lines;
use crate::server::Server;

/// Serves until the other side closes the input. Nothing but protocol messages goes to standard output.
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    let (input, output) = stdio_pipes();
    serve_pipe(server, input, output).await
}

/// Serves on any pair of pipes, a message per line, until the input ends.
pub async fn serve_pipe<R, W>(server: Server, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let running = match server.serve(Lines::new(input, output)).await {
        Ok(running) => running,
        // The other side left before it had said anything.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    running
        .waiting()
        .await
        .map(|_| ())
        .map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::upstream::Upstream;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};

    use super::*;
    use crate::record_server::RecordServer;
    use crate::server::Options;

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

    /// What is answered to these lines after the beginning, until the input ends. Every answer is a whole line of JSON.
    async fn said(lines: &[&str]) -> Vec<Value> {
        let (host, ours) = duplex(1 << 22);
        let (input, output) = split(ours);
        let upstream: Arc<dyn Upstream> = Arc::new(RecordServer::new(json!({})));
        let server = Server::new(upstream, Options::default());
        let serving = tokio::spawn(serve_pipe(server, input, output));
        let (reader, mut writer) = split(host);
        for line in [HELLO, READY].iter().chain(lines) {
            writer.write_all(line.as_bytes()).await.unwrap();
            writer.write_all(b"\n").await.unwrap();
        }
        writer.shutdown().await.unwrap();
        let mut lines = BufReader::new(reader).lines();
        let mut told: Vec<Value> = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            told.push(serde_json::from_str(&line).unwrap());
        }
        serving.await.unwrap().unwrap();
        let hello = told.iter().position(|one| one["id"] == "hello");
        let hello = told.remove(hello.unwrap());
        assert_eq!(hello["result"]["protocolVersion"], "2025-03-26");
        told
    }

    fn ping(id: impl Into<Value>) -> String {
        json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"}).to_string()
    }

    #[tokio::test]
    async fn a_line_that_is_no_message_is_answered_and_the_next_one_is_heard() {
        for (line, code, id) in [
            ("{nope", -32700, Value::Null),
            ("nope", -32700, Value::Null),
            ("[1,", -32700, Value::Null),
            (r#"{"jsonrpc":"2.0","id":true}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":7}"#, -32600, json!(7)),
            ("5", -32600, Value::Null),
        ] {
            let mut told = said(&[line, &ping(2)]).await;
            let pong = told.iter().position(|one| one["id"] == 2).unwrap();
            assert_eq!(told.remove(pong)["result"], json!({}), "{line}");
            let [complaint] = &told[..] else {
                panic!("{line}: {told:?}");
            };
            assert_eq!(complaint["error"]["code"], code, "{complaint}");
            // JSON-RPC has null for an id that cannot be read.
            assert_eq!(complaint.get("id"), Some(&id), "{complaint}");
            assert_eq!(complaint["jsonrpc"], "2.0");
            let next = complaint["error"]["data"]["error"]["next"].as_str();
            assert!(next.unwrap().starts_with("send "), "{complaint}");
        }
    }

    #[tokio::test]
    async fn what_needs_no_answer_gets_none() {
        let unknown = r#"{"jsonrpc":"2.0","method":"notifications/nobody/knows"}"#;
        let odd = r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":5}"#;
        let batch = format!("[{READY},{unknown}]");
        for line in ["", "  ", "\r", unknown, odd, &batch] {
            assert_eq!(said(&[line]).await, Vec::<Value>::new(), "{line}");
        }
        // A byte order mark is no part of a message.
        let marked = format!("\u{feff}{}\r", ping(1));
        assert_eq!(said(&[&marked]).await[0]["id"], 1);
    }

    // Receiving lists is a must of 2025-03-26.
    #[tokio::test]
    async fn a_list_of_messages_is_answered_by_one_list() {
        let bad = r#"{"jsonrpc":"2.0","id":"odd"}"#;
        let list = format!(
            r#"[{},{READY},5,{bad},{HELLO},{},{}, {{"jsonrpc":"2.0","id":9,"method":"tools/list"}}]"#,
            ping(1),
            ping("two"),
            ping(1),
        );
        let mut told = said(&[&list, &ping(3)]).await;
        let single = told.iter().position(Value::is_object).unwrap();
        assert_eq!(told.remove(single)["id"], 3);
        assert_eq!(told.len(), 1, "{told:?}");
        let answers = told[0].as_array().unwrap();
        let results = |id: Value| {
            let mine = answers.iter().filter(move |one| one["id"] == id);
            mine.collect::<Vec<_>>()
        };
        assert_eq!(answers.len(), 7, "{told:?}");
        assert_eq!(results(json!("two"))[0]["result"], json!({}));
        let tools = &results(json!(9))[0]["result"]["tools"];
        assert_eq!(tools.as_array().unwrap().len(), 6);
        for id in [Value::Null, json!("odd"), json!("hello")] {
            assert_eq!(results(id)[0]["error"]["code"], -32600);
        }
        // The same id twice: one is answered, the other refused.
        let twice = results(json!(1));
        assert_eq!(twice.len(), 2);
        assert!(twice.iter().any(|one| one["result"] == json!({})));
        assert!(twice.iter().any(|one| one["error"]["code"] == -32600));
    }

    #[tokio::test]
    async fn an_empty_list_and_one_too_long_are_refused_whole() {
        let long = vec![ping(1); 51].join(",");
        for list in ["[]", "[ ]", &format!("[{long}]")] {
            let told = said(&[list]).await;
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(told[0]["error"]["code"], -32600);
            assert_eq!(told[0]["id"], Value::Null);
        }
        let most: Vec<String> = (0..50).map(ping).collect();
        let told = said(&[&format!("[{}]", most.join(","))]).await;
        assert_eq!(told[0].as_array().unwrap().len(), 50);
    }
}
