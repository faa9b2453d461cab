"""The code that runs inside a worker, which mines one slice after the other."""
