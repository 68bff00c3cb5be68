"""cda: dated, cited coverage determinations, and the systems that share their house."""
