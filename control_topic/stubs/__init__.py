"""Generated from proto/ by `make proto`. Not edited by hand."""
