"""The embedded platform: everything of Gryvia on one machine, in one folder, without a cluster."""
