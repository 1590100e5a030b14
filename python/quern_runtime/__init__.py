"""The runtime that runs the user's class. No third-party package; Python 3.9 and later."""
