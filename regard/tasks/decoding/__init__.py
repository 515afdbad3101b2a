"""Results of a search beyond the best target: consensus of texts, alternatives, beam trees."""
