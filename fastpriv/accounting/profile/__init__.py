"""Privacy profiles: how delta falls with epsilon, composed and certified."""
