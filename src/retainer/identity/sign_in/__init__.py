"""Sign-ins to the console, and the throttle that slows down password guessing."""
