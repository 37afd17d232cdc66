"""How weights and margins grow over training, and what follows for its end."""
