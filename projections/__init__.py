"""What is true now: folds over commits."""
