"""What running code says about its own progress: numbers out of logs, termination messages and annotations.

    controller   actions={READ_LOG: read_log}, subresources=("pods/log",)
    decide       progress = follow_log(world, pod, patterns, now)
                 progress.reading    newest values, their history, what was no number
                 progress.action     into the plan, until there is nothing more to read

`log` follows one container, `tail` is its place in the log, `reports` turns lines into numbers, `history` bounds their course.
"""
