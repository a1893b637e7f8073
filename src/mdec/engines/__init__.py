"""Who makes the members: this process, a card or a cluster."""
