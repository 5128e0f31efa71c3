"""What the pool is: the pool file, quantities, inventory and ledger. Pure; imports nothing of the others."""
