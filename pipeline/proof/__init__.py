"""The last step: parts are read back, compared and sealed; and everything that checks them later."""
