"""Full-width linear convolutions over a finite group: the least norm of frequencies."""
