"""What builds, checks and tests the project and is no part of what is installed."""
