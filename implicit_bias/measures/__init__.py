"""How near a network is to a predicted limit: in numbers, along training and at its end."""
