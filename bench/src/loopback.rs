//! A model on loopback that answers at once, in the format of Chat Completions: only as much of HTTP as our own client uses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// What it answers to the n-th request: the name and the arguments of a call, or nothing more to do.
pub type Next = dyn Fn(usize) -> Option<(String, Value)> + Send + Sync;

/// Starts one; gives its address. `asked` hears the number of every request as it comes.
pub fn start(next: Arc<Next>, asked: Arc<dyn Fn(usize) + Send + Sync>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (next, asked, count) = (Arc::clone(&next), Arc::clone(&asked), Arc::clone(&count));
            thread::spawn(move || {
                let heard = move || {
                    let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    asked(n);
                    next(n)
                };
                // Whoever hangs up is done.
                let _ = serve(stream, &heard);
            });
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, heard: &dyn Fn() -> Option<(String, Value)>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).context("a request line")?.to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (kind, body) = if path.ends_with("/models") {
            ("application/json", json!({"data": [{"id": "bench"}]}).to_string())
        } else {
            ("text/event-stream", events(heard()))
        };
        let length = body.len();
        write!(writer, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")?;
    }
}

fn events(call: Option<(String, Value)>) -> String {
    let (delta, reason) = match call {
        Some((name, arguments)) => {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            (json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}), "tool_calls")
        }
        None => (json!({"content": "That is all."}), "stop"),
    };
    let first = json!({"choices": [{"index": 0, "delta": delta}]});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")
}
