"""The page of transactions: what an operator looks at, served by the driver or beside it."""
