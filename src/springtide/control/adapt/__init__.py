"""An app that adapts by itself: the loop, its settings, its ledger."""
