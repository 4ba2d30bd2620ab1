"""The doctor: named checks of an installation. Each says what is wrong and where, or why it could not look."""
