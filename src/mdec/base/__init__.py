"""How one member clusters."""
