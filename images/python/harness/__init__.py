"""The harness: what runs inside a scoring container.

Turns orders from the server into attempts of the sealed tests, and what the attempts say into checked records.
It never judges, never keeps a key or a later attempt's pins where a candidate's code runs, and never imports the
candidate's code into the process that owns the results. How it fails: `trouble` frames for its own failures,
`attempt-end` frames for everything the candidate causes.
"""
