//! Untrusted text in tool-result position, between delimiters that it cannot hold (tool-contract §21).
