"""Reading: from a raw reply to typed evidence. It acts once, when a call is reported, and may change freely."""
