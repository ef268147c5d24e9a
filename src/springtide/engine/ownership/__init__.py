"""Who owns which slice, who stands by for it, and how many rows it gets."""
