"""A closed form and its trainer: autoencoders whose information is asked for."""
