"""What GitHub's runner gives a container action, and what it takes from one.

The contract is the runner's (https://docs.github.com/actions/reference, and its source): inputs are
variables ``INPUT_`` + the name in upper case with its hyphens; a job summary and outputs are files;
everything that is printed is read for workflow commands. Nothing outside this package and
`mrcr_action.action` knows of it.
"""
