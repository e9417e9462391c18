"""The GitHub Action: what the image runs in a job.

`entry` is where the image starts, `main` runs the Action, `post` cleans up once the job is over.
What a runner gives and takes is in `mrcr_action.github`.
"""
