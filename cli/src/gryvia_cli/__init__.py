"""The gryvia command: the embedded platform, and the verbs for what runs on any platform."""
