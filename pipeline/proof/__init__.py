"""The last step: parts are read back, compared and proven; and everything that checks them later."""
