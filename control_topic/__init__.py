"""The control topic: messages, their wire form, and the two transports that carry them."""
