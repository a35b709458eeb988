//! The `portcullis` binary; the library beside it is all of it.

fn main() -> std::process::ExitCode {
    portcullis_cli::run_program()
}
