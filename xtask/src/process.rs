//! Starting other programs: every failure becomes one sentence that names the command.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail};

/// The cargo that started this program, or the one on the path.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or(&program).to_owned();
    command.get_args().fold(program, |mut line, arg| {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
        line
    })
}

/// Runs with the terminal of this program; fails unless it exits with 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("`{}` cannot be started", shown(command)))?;
    succeeded(command, status)
}

/// Runs and returns what it printed on standard output; fails unless it exits with 0.
pub fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("`{}` cannot be started", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", shown(command), output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed text that is not UTF-8", shown(command)))
}

/// Whether it starts and exits with 0; its output is dropped.
pub fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs, passes both outputs on line by line as they come, and shows each line to `see`.
pub fn watch(command: &mut Command, mut see: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", shown(command)))?;
    let (sender, lines) = mpsc::channel();
    let out = child.stdout.take().map(|pipe| pass_on(pipe, std::io::stdout(), sender.clone()));
    let err = child.stderr.take().map(|pipe| pass_on(pipe, std::io::stderr(), sender.clone()));
    drop(sender);
    for line in lines {
        see(&line);
    }
    for reader in [out, err].into_iter().flatten() {
        if reader.join().is_err() {
            bail!("reading the output of `{}` failed", shown(command));
        }
    }
    child.wait().with_context(|| format!("`{}` cannot be waited for", shown(command)))
}

fn pass_on<R, W>(from: R, mut to: W, lines: mpsc::Sender<String>) -> thread::JoinHandle<()>
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        // A pipe that cannot be read any more has ended; what was printed so far still counts.
        while matches!(from.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            // Our own output may be closed (a pager that quit): the counting goes on.
            let _ = to.write_all(&line);
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if lines.send(text).is_err() {
                break;
            }
        }
    })
}

/// Turns an exit status into a sentence.
pub fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!("`{}` failed ({status})", shown(command))
}
