"""How results look: panels, figures, downloads, and the style sheet."""
